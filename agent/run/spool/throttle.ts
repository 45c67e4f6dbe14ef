import type { Held } from './held.ts'

/**
 * Holds programs back while too much is unacknowledged, or while the disk refuses to take more. Where that does not pass, it lets
 * them go on, and what they log is not kept: a program must not fail because nobody could listen to it.
 */
export interface Throttle {
  add(held: Held, chars: number): void
  /** So many characters were acknowledged; the placement's own count is right already. */
  freed(chars: number): void
  /** A placement is over, with whatever of it was left. */
  drop(held: Held): void
  pauseFor(held: Held): Promise<void> | undefined
  /** It goes on without its log being kept. */
  isCut(held: Held): boolean
  /** Told when that is over for a placement. */
  onRelief(listener: (held: Held) => void): void
  /** Both answer whether this is news. */
  diskRefuses(): boolean
  diskWorks(): boolean
  isDiskRefusing(): boolean
  /** Characters that are not acknowledged. */
  total(): number
  close(): void
}

export interface ThrottleOptions {
  /** With so much of its own unacknowledged, a run waits; it is not cut for that. */
  runBytes: number
  totalBytes: number
  /** How long a run waits for room at most. */
  cutAfterMs: number
  /** What an earlier process has left. */
  total: number
}

interface Paused {
  promise: Promise<void>
  resume(): void
  timer: NodeJS.Timeout
}

export function createThrottle(limits: ThrottleOptions): Throttle {
  const paused = new Map<Held, Paused>()
  const cut = new Set<Held>()
  let onRelief: (held: Held) => void = () => undefined
  let { total } = limits
  let isRefusing = false

  const hasNoRoom = (share: number) => isRefusing || total > limits.totalBytes * share
  const isOver = (held: Held, share: number) =>
    held.backlog > limits.runBytes * share || (hasNoRoom(share) && !cut.has(held))

  const resume = (held: Held) => {
    const waiting = paused.get(held)
    clearTimeout(waiting?.timer)
    paused.delete(held)
    waiting?.resume()
  }

  // Half-way down, or every acknowledgement would start and stop the program once.
  const relieve = () => {
    if (!hasNoRoom(0.5)) {
      for (const held of cut) onRelief(held)
      cut.clear()
    }
    for (const held of paused.keys()) if (!isOver(held, 0.5)) resume(held)
  }

  const cutOff = (held: Held) => {
    const waiting = paused.get(held)
    // It waits for its own words to be acknowledged; others may take the room meanwhile.
    if (waiting && !hasNoRoom(1)) waiting.timer = setTimeout(() => cutOff(held), limits.cutAfterMs)
    if (!hasNoRoom(1)) return
    cut.add(held)
    if (!isOver(held, 1)) resume(held)
  }

  return {
    add(held, chars) {
      held.backlog += chars
      total += chars
    },
    freed(chars) {
      total -= chars
      if (paused.size > 0 || cut.size > 0) relieve()
    },
    drop(held) {
      total -= held.backlog
      held.backlog = 0
      cut.delete(held)
      resume(held)
      if (paused.size > 0 || cut.size > 0) relieve()
    },
    pauseFor(held) {
      const waiting = paused.get(held)
      if (waiting) return waiting.promise
      if (!isOver(held, 1)) return undefined
      const { promise, resolve } = Promise.withResolvers<void>()
      const timer = setTimeout(() => cutOff(held), limits.cutAfterMs)
      paused.set(held, { promise, resume: resolve, timer })
      return promise
    },
    isCut: (held) => cut.has(held),
    onRelief: (listener) => (onRelief = listener),
    diskRefuses() {
      const isNews = !isRefusing
      isRefusing = true
      return isNews
    },
    diskWorks() {
      const isNews = isRefusing
      isRefusing = false
      if (isNews) relieve()
      return isNews
    },
    isDiskRefusing: () => isRefusing,
    total: () => total,
    close() {
      for (const { timer } of paused.values()) clearTimeout(timer)
    },
  }
}
