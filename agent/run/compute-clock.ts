/** Counts how long a program computes and ends it when that is too long. At first, and while it is parked, both stand still. */
export interface ComputeClock {
  /** Stands still from now on. Answers the milliseconds since it last began to count. */
  pause(): number
  /** Counts from zero; the timeout has what was left of it. */
  go(): void
  /** Milliseconds since it last began to count, 0 while it stands still. */
  counted(): number
  /** What was left of the timeout when it last began to count, or came to stand still. */
  leftMs(): number
  /** The timeout is of no interest any more. */
  disarm(): void
}

const LONGEST_TIMER_MS = 2 ** 31 - 1

/** `counted`: what it had counted before, where it only goes on. The timeout is what is left without that. */
export function createComputeClock(timeoutMs: number, onTimeout: () => void, countedBefore = 0): ComputeClock {
  let leftMs = timeoutMs
  let countsFrom: number | undefined
  let isDisarmed = false
  let timer: NodeJS.Timeout | undefined

  let before = countedBefore

  const counted = () => (countsFrom === undefined ? 0 : Math.round(before + performance.now() - countsFrom))

  return {
    pause() {
      const ms = counted()
      if (countsFrom !== undefined) leftMs -= performance.now() - countsFrom
      clearTimeout(timer)
      countsFrom = undefined
      before = 0
      return ms
    },
    go() {
      if (countsFrom !== undefined) return
      countsFrom = performance.now()
      if (!isDisarmed) timer = setTimeout(onTimeout, Math.min(Math.max(leftMs, 0), LONGEST_TIMER_MS))
    },
    counted,
    leftMs: () => leftMs,
    disarm() {
      isDisarmed = true
      clearTimeout(timer)
    },
  }
}
