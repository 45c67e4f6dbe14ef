import type { Held } from './held.ts'

/**
 * Holds programs back while too much is unacknowledged, or while the disk refuses to take more. Where that does not pass, it lets
 * them go on, and what they log is not kept: a program must not fail because nobody could listen to it.
 */
export interface Throttle {
  add(held: Held, bytes: number): void
  /** So much was acknowledged; the placement's own count is right already. */
  freed(bytes: number): void
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
  /** Bytes that are not acknowledged; see `Held.backlog`. */
  total(): number
  close(): void
}

export interface ThrottleOptions {
  /** A run with so many unacknowledged bytes of its own waits; it is not cut for that. */
  runBytes: number
  /** The same for all runs together. */
  totalBytes: number
  /** How long a run waits for room at most, before its log is no longer kept; 30 s by default. */
  cutAfterMs?: number
  /** After so long without an acknowledgement nobody is there to hear others; 5 s by default. */
  awayMs?: number
  /** What an earlier process has left. */
  total: number
}

const CUT_AFTER_MS = 30_000

/**
 * While acknowledgements come, a run waits with so many entries of its own under way: what others have to say stands
 * behind them, and a coordinator takes some 60,000 a second.
 */
const MOST_UNDER_WAY = 8_192
const AWAY_MS = 5_000

interface Paused {
  promise: Promise<void>
  resume(): void
  timer: NodeJS.Timeout
}

export function createThrottle(limits: ThrottleOptions): Throttle {
  return new SpoolThrottle(limits)
}

class SpoolThrottle implements Throttle {
  readonly #limits: Required<ThrottleOptions>
  readonly #paused = new Map<Held, Paused>()
  readonly #cut = new Set<Held>()
  #relieved: (held: Held) => void = () => undefined
  #total: number
  #isRefusing = false
  #acknowledgedAt = -Infinity
  #lookTimer: NodeJS.Timeout | undefined

  constructor(limits: ThrottleOptions) {
    this.#limits = { awayMs: AWAY_MS, cutAfterMs: CUT_AFTER_MS, ...limits }
    this.#total = limits.total
  }

  add(held: Held, bytes: number): void {
    held.backlog += bytes
    this.#total += bytes
  }

  freed(bytes: number): void {
    this.#total -= bytes
    this.#acknowledgedAt = performance.now()
    this.#relieveIfNeeded()
  }

  drop(held: Held): void {
    this.#total -= held.backlog
    held.backlog = 0
    this.#cut.delete(held)
    this.#resume(held)
    this.#relieveIfNeeded()
  }

  pauseFor(held: Held): Promise<void> | undefined {
    const waiting = this.#paused.get(held)
    if (waiting) return waiting.promise
    if (!this.#isOver(held, 1)) return undefined
    const { promise, resolve } = Promise.withResolvers<void>()
    const timer = setTimeout(() => this.#cutOff(held), this.#limits.cutAfterMs)
    this.#paused.set(held, { promise, resume: resolve, timer })
    this.#lookLater()
    return promise
  }

  isCut(held: Held): boolean {
    return this.#cut.has(held)
  }

  onRelief(listener: (held: Held) => void): void {
    this.#relieved = listener
  }

  diskRefuses(): boolean {
    const isNews = !this.#isRefusing
    this.#isRefusing = true
    return isNews
  }

  diskWorks(): boolean {
    const isNews = this.#isRefusing
    this.#isRefusing = false
    if (isNews) this.#relieve()
    return isNews
  }

  isDiskRefusing(): boolean {
    return this.#isRefusing
  }

  total(): number {
    return this.#total
  }

  close(): void {
    clearTimeout(this.#lookTimer)
    for (const { timer } of this.#paused.values()) clearTimeout(timer)
  }

  #hasNoRoom(share: number): boolean {
    return this.#isRefusing || this.#total > this.#limits.totalBytes * share
  }

  #isOver(held: Held, share: number): boolean {
    if (held.backlog > this.#limits.runBytes * share || this.#keepsOthersWaiting(held, share)) return true
    return this.#hasNoRoom(share) && !this.#cut.has(held)
  }

  #keepsOthersWaiting(held: Held, share: number): boolean {
    const underWay = held.written - held.acked + held.gathered.length
    return underWay > MOST_UNDER_WAY * share && performance.now() - this.#acknowledgedAt < this.#limits.awayMs
  }

  /** Acknowledgements may have ceased to come. */
  #lookLater(): void {
    this.#lookTimer ??= setTimeout(() => {
      this.#lookTimer = undefined
      this.#relieve()
      if (this.#paused.size > 0) this.#lookLater()
    }, this.#limits.awayMs)
  }

  #resume(held: Held): void {
    const waiting = this.#paused.get(held)
    clearTimeout(waiting?.timer)
    this.#paused.delete(held)
    waiting?.resume()
  }

  #relieveIfNeeded(): void {
    if (this.#paused.size > 0 || this.#cut.size > 0) this.#relieve()
  }

  /** Half-way down, or every acknowledgement would start and stop the program once. */
  #relieve(): void {
    if (!this.#hasNoRoom(0.5)) {
      for (const held of this.#cut) this.#relieved(held)
      this.#cut.clear()
    }
    for (const held of this.#paused.keys()) if (!this.#isOver(held, 0.5)) this.#resume(held)
  }

  #cutOff(held: Held): void {
    const waiting = this.#paused.get(held)
    // It waits for its own words to be acknowledged; others may take the room meanwhile.
    if (waiting && !this.#hasNoRoom(1)) waiting.timer = setTimeout(() => this.#cutOff(held), this.#limits.cutAfterMs)
    if (!this.#hasNoRoom(1)) return
    this.#cut.add(held)
    if (!this.#isOver(held, 1)) this.#resume(held)
  }
}
