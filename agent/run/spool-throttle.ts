import type { Held } from './spool-held.ts'

/** Holds programs back while too much is unacknowledged, or while the disk refuses to take more. */
export interface Throttle {
  add(held: Held, chars: number): void
  /** So many characters were acknowledged; the placement's own count is right already. */
  freed(chars: number): void
  /** A placement is over, with whatever of it was left. */
  drop(held: Held): void
  pauseFor(held: Held): Promise<void> | undefined
  /** Both answer whether this is news. */
  diskRefuses(): boolean
  diskWorks(): boolean
  isDiskRefusing(): boolean
}

export function createThrottle(limits: { runBytes: number; totalBytes: number }): Throttle {
  const paused = new Map<Held, { promise: Promise<void>; resume: () => void }>()
  let total = 0
  let isRefusing = false

  const isOver = (held: Held, share: number) =>
    isRefusing || held.backlog > limits.runBytes * share || total > limits.totalBytes * share

  // Half-way down, or every acknowledgement would start and stop the program once.
  const resumeAll = () => {
    for (const [held, { resume }] of paused) {
      if (isOver(held, 0.5)) continue
      paused.delete(held)
      resume()
    }
  }

  return {
    add(held, chars) {
      held.backlog += chars
      total += chars
    },
    freed(chars) {
      total -= chars
      if (paused.size > 0) resumeAll()
    },
    drop(held) {
      total -= held.backlog
      held.backlog = 0
      paused.get(held)?.resume()
      paused.delete(held)
      if (paused.size > 0) resumeAll()
    },
    pauseFor(held) {
      const waiting = paused.get(held)
      if (waiting) return waiting.promise
      if (!isOver(held, 1)) return undefined
      let resume = () => {}
      const promise = new Promise<void>((resolve) => (resume = resolve))
      paused.set(held, { promise, resume })
      return promise
    },
    diskRefuses() {
      const isNews = !isRefusing
      isRefusing = true
      return isNews
    },
    diskWorks() {
      const isNews = isRefusing
      isRefusing = false
      if (isNews) resumeAll()
      return isNews
    },
    isDiskRefusing: () => isRefusing,
  }
}
