/** What was sent last for a run, so that an agent that was started again can hear it once more. */
export interface RecentFrames {
  /** A run begins: what was said before is nobody's business any more. */
  begin(): void
  add(frame: Buffer): void
  /** Number of the oldest frame that is kept, and of the next one; the first of a run is 0. */
  readonly first: number
  readonly next: number
  from(n: number): Buffer[]
}

/**
 * Four times what a pipe holds, and the agent reads ahead of its disk by less. The last frame is kept whatever its
 * size.
 */
const MOST_BYTES = 256 * 1024

export function keepRecentFrames(): RecentFrames {
  let kept: Buffer[] = []
  let bytes = 0
  let first = 0

  const drop = () => {
    bytes -= kept.shift()!.length
    first += 1
  }

  const isTooMuch = () => bytes > MOST_BYTES && kept.length > 1

  return {
    begin() {
      kept = []
      bytes = first = 0
    },
    add(frame) {
      kept.push(frame)
      bytes += frame.length
      while (isTooMuch()) drop()
    },
    get first() {
      return first
    },
    get next() {
      return first + kept.length
    },
    from: (n) => kept.slice(n - first),
  }
}
