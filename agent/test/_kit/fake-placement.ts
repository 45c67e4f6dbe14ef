import type { Ending } from '@windlass/shared/model/ending.ts'
import type { Entry, Offer } from '@windlass/shared/wire/agent.ts'

/** What the fake knows of a placement. */
export interface FakePlacement {
  offer: Offer
  state: 'offered' | 'accepted' | 'stale'
  entries: Entry[]
  /** Entries that came again although they had come before. */
  doubles: number
}

export function endingOf(placement: FakePlacement): Ending | undefined {
  const last = placement.entries.at(-1)
  return last?.[0] === 'end' ? last[2] : undefined
}

/** Texts of the log lines that arrived. */
export function linesOf(placement: FakePlacement): string[] {
  return placement.entries.flatMap((entry) =>
    entry[0] === 'e' && entry[2].startsWith('log.') ? [JSON.parse(entry[3]).text] : [],
  )
}
