import type { Log } from '@windlass/shared/log.ts'
import { probe } from '@windlass/shared/probe.ts'
import { pause } from '@windlass/shared/time.ts'
import { isConnectionLoss } from '../../db/client.ts'
import type { Backlog } from './backlog.ts'

/** Knows when to look at the timers next. */
export interface Timers {
  /** A timer has been set that is due in so many milliseconds. */
  expect(inMs: number): void
  /** Fires what is due until the signal fires. `fireDue` answers in how many milliseconds the next one is due. */
  run(fireDue: () => Promise<number | null>, signal: AbortSignal): Promise<void>
}

/** Timers that were set through another coordinator, which is gone since, are late by so much at most. */
const LOOK_AGAIN_MS = 2000
const AFTER_FAILURE_MS = 500

export function createTimers(log: Log, of: 'timers' | 'schedules', backlog: Pick<Backlog, 'lost'>): Timers {
  let nextAt = 0
  let awake: (() => void) | undefined

  async function run(fireDue: () => Promise<number | null>, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await untilNext(signal)
      if (signal.aborted) return
      nextAt = performance.now() + LOOK_AGAIN_MS
      try {
        const nextMs = await fireDue()
        if (nextMs !== null) expect(nextMs)
        probe('timers.fired', { of, nextMs })
      } catch (error) {
        // What is due by then is not decided before what agents have told.
        if (isConnectionLoss(error)) backlog.lost()
        log.warn('timers.failed', { of, error })
        nextAt = performance.now() + AFTER_FAILURE_MS
      }
    }
  }

  /** Until the next one is due, which may be set to an earlier moment meanwhile. */
  async function untilNext(signal: AbortSignal): Promise<void> {
    for (let left = nextAt - performance.now(); left > 0 && !signal.aborted; left = nextAt - performance.now()) {
      const sooner = new AbortController()
      awake = () => sooner.abort()
      await pause(Math.ceil(left), AbortSignal.any([signal, sooner.signal]))
    }
    awake = undefined
  }

  function expect(inMs: number): void {
    const at = performance.now() + Math.max(0, inMs)
    if (at >= nextAt) return
    nextAt = at
    awake?.()
  }

  return { expect, run }
}
