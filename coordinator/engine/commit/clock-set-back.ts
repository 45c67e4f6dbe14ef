import type { Log } from '@windlass/shared/log.ts'
import { pause } from '@windlass/shared/time.ts'

/** Puts right what was set by a clock of the database that was ahead, and has been set back since. */
export interface ClockSetBack {
  /** A pulse has found that it was set back. */
  found(): void
  /** Does these acts after each find, until the signal fires. They may be done by several coordinators at once. */
  run(acts: readonly (() => Promise<unknown>)[], signal: AbortSignal): Promise<void>
}

const AFTER_FAILURE_MS = 1000

export function createClockSetBack(log: Log): ClockSetBack {
  let finding = Promise.withResolvers<void>()

  async function run(acts: readonly (() => Promise<unknown>)[], signal: AbortSignal): Promise<void> {
    const stopped = new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
    for (;;) {
      await Promise.race([finding.promise, stopped])
      if (signal.aborted) return
      finding = Promise.withResolvers()
      await Promise.all(acts.map((act) => untilDone(act, signal)))
    }
  }

  async function untilDone(act: () => Promise<unknown>, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      try {
        await act()
        return
      } catch (error) {
        log.warn('clock.setBack.failed', { error })
        await pause(AFTER_FAILURE_MS, signal)
      }
    }
  }

  return { found: () => finding.resolve(), run }
}
