import type { Random } from '@windlass/shared/test/_kit/seed.ts'

/** What a scenario is like. With sizes so small little text meets what takes gigabytes in earnest. */
export interface Kind {
  runs: number
  segmentBytes: number
  chunkBytes: number
  windowChars: number
  talkativeEntries: number
  memoryBytes: number
  frameChars: number
  totalBytes: number
  runBytes: number
  /** Programs are held back, and lines left out. */
  isThrottled: boolean
  /** A placement may have the numbers of one that is over. */
  isNamedAgain: boolean
  ways: readonly ('stop' | 'kill' | 'power')[]
  /** The database may lose what it had committed. */
  forgets: boolean
  /** Files cannot be read for a while, or are lost. */
  files: 'readable' | 'unreadable' | 'lost'
}

export function kindOf(random: Random): Kind {
  const next = () => random.next()
  const pick = <T>(from: readonly T[]) => random.pick(from)
  const isThrottled = next() < 0.2
  const isNamedAgain = next() < 0.2
  const last = isNamedAgain ? 'kill' : 'power'
  return {
    runs: pick([2, 5, 30]),
    segmentBytes: pick([1_500, 8_000, 40_000]),
    chunkBytes: pick([400, 3_000, 20_000]),
    windowChars: pick([3_000, 20_000, 200_000]),
    talkativeEntries: pick([5, 40, 400]),
    memoryBytes: pick([500, 4_000, 1_000_000]),
    frameChars: pick([600, 5_000, 5_000, 5_000, Infinity]),
    totalBytes: isThrottled ? pick([5_000, 30_000]) : 2 ** 30,
    runBytes: isThrottled ? pick([2_000, 30_000]) : 2 ** 26,
    isThrottled,
    isNamedAgain,
    ways: pick([[], isThrottled ? ['stop'] : ['stop', 'kill', last]]),
    forgets: next() < 0.3,
    files: pick(['readable', 'readable', 'unreadable', 'lost']),
  }
}
