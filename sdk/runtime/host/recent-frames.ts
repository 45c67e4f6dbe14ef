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
  let frames: Buffer[] = []
  let bytes = 0
  let first = 0

  const drop = () => {
    bytes -= frames.shift()!.length
    first += 1
  }

  const isTooMuch = () => bytes > MOST_BYTES && frames.length > 1

  return {
    begin() {
      frames = []
      bytes = first = 0
    },
    add(frame) {
      frames.push(frame)
      bytes += frame.length
      while (isTooMuch()) drop()
    },
    get first() {
      return first
    },
    get next() {
      return first + frames.length
    },
    from: (n) => frames.slice(n - first),
  }
}
