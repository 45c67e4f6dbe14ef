/** Counts how long a program computes and ends it when that is too long. At first, and while it is parked, both stand still. */
export interface ComputeClock {
  /** Stands still from now on. Answers the milliseconds since it last began to count. */
  pause(): number
  /** Counts from zero; the timeout has what was left of it. */
  go(): void
  /** Milliseconds since it last began to count, 0 while it stands still. */
  counted(): number
  /** What was left of the timeout when it last began to count, also in an earlier agent, or came to stand still. */
  leftMs(): number
  /** How often it has begun to count, or was set back by a stall. */
  turns(): number
  /** The timeout is of no interest any more. */
  disarm(): void
}

/** Clock that it counts by; tests bring their own. */
export interface Time {
  now(): number
  /** Calls `act` after so long. Returns a function that prevents it. */
  later(ms: number, act: () => void): () => void
}

/** Out of time is out of time: the grace is for closing files, not for going on. */
export const TIMEOUT_GRACE_MS = 5_000

const OF_MACHINE: Time = {
  now: () => performance.now(),
  later(ms, act) {
    const timer = setTimeout(act, ms)
    return () => clearTimeout(timer)
  },
}

/** So often it looks at the time. */
const LOOK_MS = 500
/** What a busy agent may be late with a look. Where it is later it stood still, and the rest is nobody's time. */
const BUSY_MS = 500
/**
 * So much is taken off at least, or as much as the program may compute. What overloads its agent for ever comes to an
 * end all the same, as does a program that may signal its agent.
 */
const LEAST_STALLS_MS = 120_000
/** A look that is later than this comes before what lay in the pipes. */
const LATE_MS = 50
/** In which that is read. */
const READ_MS = 250

interface ClockOptions {
  /** Milliseconds that were counted before a takeover. The timeout is what remains without them. */
  countedMs?: number | undefined
  time?: Time | undefined
}

export function createComputeClock(timeoutMs: number, onTimeout: () => void, options: ClockOptions = {}): ComputeClock {
  return new LookingClock(timeoutMs, onTimeout, options)
}

/** Looks at the time again and again, so that it knows how long its agent stood still. */
class LookingClock implements ComputeClock {
  readonly #time: Time
  readonly #onTimeout: () => void
  #leftMs: number
  #before: number
  #countsFrom: number | undefined
  /** Undefined while no look is due. */
  #lookedAt: number | undefined
  /** Taken off since it last began to count, and what may still be. */
  #stalledMs = 0
  #mayStallMs: number
  #turns = 0
  #isDisarmed = false
  #stopTimer = () => {}

  constructor(timeoutMs: number, onTimeout: () => void, { countedMs = 0, time = OF_MACHINE }: ClockOptions) {
    this.#time = time
    this.#onTimeout = onTimeout
    this.#leftMs = timeoutMs
    this.#before = countedMs
    this.#mayStallMs = Math.max(timeoutMs, LEAST_STALLS_MS)
  }

  go(): void {
    if (this.#countsFrom !== undefined) return
    this.#countsFrom = this.#time.now()
    this.#turns += 1
    if (!this.#isDisarmed) this.#lookWithin(Math.max(this.#leftMs, 0))
  }

  pause(): number {
    const ms = this.counted()
    this.#stopLooking()
    this.#leftMs -= this.#passed()
    this.#countsFrom = undefined
    this.#stalledMs = 0
    this.#before = 0
    return ms
  }

  counted(): number {
    return this.#countsFrom === undefined ? 0 : Math.round(this.#before + this.#passed())
  }

  leftMs(): number {
    return this.#countsFrom === undefined ? this.#leftMs : this.#leftMs + this.#before
  }

  turns(): number {
    return this.#turns
  }

  disarm(): void {
    this.#isDisarmed = true
    this.#stopLooking()
  }

  #passed(): number {
    if (this.#countsFrom === undefined) return 0
    return this.#time.now() - this.#countsFrom - this.#stalledMs - this.#stallNow()
  }

  /** Since the last look. */
  #stallNow(): number {
    if (this.#lookedAt === undefined) return 0
    const overdueMs = this.#time.now() - this.#lookedAt - LOOK_MS - BUSY_MS
    return Math.min(Math.max(overdueMs, 0), this.#mayStallMs)
  }

  #takeStallOff(): void {
    const ms = this.#stallNow()
    if (ms > 0) this.#turns += 1
    this.#stalledMs += ms
    this.#mayStallMs -= ms
  }

  #stopLooking(): void {
    this.#takeStallOff()
    this.#lookedAt = undefined
    this.#stopTimer()
  }

  #lookWithin(leftMs: number): void {
    const now = this.#time.now()
    const ms = Math.min(leftMs, LOOK_MS)
    this.#lookedAt = now
    this.#stopTimer = this.#time.later(ms, () => this.#look(now + ms))
  }

  #look(dueAt: number): void {
    this.#takeStallOff()
    const now = this.#time.now()
    this.#lookedAt = now
    const leftMs = this.#leftMs - this.#passed()
    if (leftMs > 0) this.#lookWithin(leftMs)
    else if (now - dueAt <= LATE_MS) this.#onTimeout()
    // What the program said of its end meanwhile, or that it only waits, counts before that.
    else this.#stopTimer = this.#time.later(READ_MS, this.#onTimeout)
  }
}
