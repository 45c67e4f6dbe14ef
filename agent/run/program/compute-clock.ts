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
  /** How often it has begun to count. */
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

const LONGEST_TIMER_MS = 2 ** 31 - 1

const OF_MACHINE: Time = {
  now: () => performance.now(),
  later(ms, act) {
    const timer = setTimeout(act, Math.min(ms, LONGEST_TIMER_MS))
    return () => clearTimeout(timer)
  },
}

interface ClockOptions {
  /** Milliseconds that were counted before a takeover. The timeout is what remains without them. */
  countedMs?: number | undefined
  time?: Time | undefined
}

export function createComputeClock(timeoutMs: number, onTimeout: () => void, options: ClockOptions = {}): ComputeClock {
  const { countedMs: countedBefore = 0, time = OF_MACHINE } = options
  let leftMs = timeoutMs
  let countsFrom: number | undefined
  let turns = 0
  let isDisarmed = false
  let stopTimer = () => {}

  let before = countedBefore

  const counted = () => (countsFrom === undefined ? 0 : Math.round(before + time.now() - countsFrom))

  return {
    pause() {
      const ms = counted()
      if (countsFrom !== undefined) leftMs -= time.now() - countsFrom
      stopTimer()
      countsFrom = undefined
      before = 0
      return ms
    },
    go() {
      if (countsFrom !== undefined) return
      countsFrom = time.now()
      turns += 1
      if (!isDisarmed) stopTimer = time.later(Math.max(leftMs, 0), onTimeout)
    },
    counted,
    leftMs: () => (countsFrom === undefined ? leftMs : leftMs + before),
    turns: () => turns,
    disarm() {
      isDisarmed = true
      stopTimer()
    },
  }
}
