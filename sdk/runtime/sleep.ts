import { waitsFor } from './bridge.ts'
import { millisecondsOf, momentOf, type Duration } from './duration.ts'
import { reviveError } from './wait-errors.ts'

// A timer of JavaScript reaches 24.8 days.
const LONGEST_TIMER_MS = 2 ** 31 - 1

/** How long, or until when. */
export type SleepTime = Duration | Date | { until: Date | number }

/**
 * Waits. From a second on the run is `sleeping` meanwhile as far as nothing else of it goes on: it takes no slot, its
 * time is not counted, and it goes on even when the machine that executed it is gone. Rejects with a `CancelledError`
 * or `TimedOutError` when the run is to end.
 *
 * While the run is `sleeping`, timers of the program that were `unref`'d go on firing as long as its process is kept.
 * When the program is led through its past again, a sleep that was over comes at once, also one below a second; a raw
 * timer takes its time again. So do not let the two race for an order that matters.
 *
 * @param time a duration (`'30s'`, `'1.5h'`, `'2d'` or milliseconds), a Date, or `{ until }`; at most 366 days
 * @example
 * import { log, sleep } from 'windlass'
 *
 * export async function run(input: { remindAt: number }) {
 *   await sleep('30s')
 *   log('half a minute later')
 *   await sleep({ until: input.remindAt })
 * }
 */
export function sleep(time: SleepTime): Promise<void> {
  const target = targetOf(time)
  const waits = waitsFor('sleep()')
  if (!waits) return sleepByHand('ms' in target ? Date.now() + target.ms : target.until)
  const ask = { for: 'sleep' as const, ...target }
  const args = 'ms' in target ? target.ms : target
  return waits.wait({ kind: 'sleep', name: '', args, ask, toError: reviveError }) as Promise<void>
}

function targetOf(time: SleepTime): { ms: number } | { until: number } {
  if (time instanceof Date) return { until: momentOf('sleep(date)', time) }
  if (typeof time === 'object' && time !== null && 'until' in time) {
    return { until: momentOf('sleep({ until })', time.until) }
  }
  return { ms: millisecondsOf('sleep(duration)', time) }
}

async function sleepByHand(until: number): Promise<void> {
  for (let left = until - Date.now(); left > 0; left = until - Date.now()) {
    await new Promise((resolve) => setTimeout(resolve, Math.min(left, LONGEST_TIMER_MS)))
  }
}
