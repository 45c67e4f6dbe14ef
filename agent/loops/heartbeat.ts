import { pause } from '@windlass/shared/time.ts'
import type { Bell } from '../bell.ts'
import type { Deps } from '../deps.ts'

/** Which heartbeats were answered. All times are of the monotonic clock: wall clocks jump. */
export interface Beats {
  /** Numbers a heartbeat that is being sent now. */
  next(): number
  answered(n: number): void
  /** When the last heartbeat that was answered had been sent: every lease that it named holds from there. */
  heldFrom(): number
  /** Asks for a heartbeat before its time. */
  readonly bell: Bell
}

/** More than are ever under way; those that were lost with a connection must not pile up. */
const REMEMBERED = 20

export function createBeats(bell: Bell): Beats {
  const sent = new Map<number, number>()
  let count = 0
  let heldFrom = -Infinity
  return {
    next() {
      count += 1
      sent.set(count, performance.now())
      sent.delete(count - REMEMBERED)
      return count
    },
    answered(n) {
      heldFrom = Math.max(heldFrom, sent.get(n) ?? -Infinity)
      sent.delete(n)
    },
    heldFrom: () => heldFrom,
    bell,
  }
}

/** One heartbeat for all that is held, at intervals that differ so that a fleet does not beat as one. */
export async function heartbeatLoop(deps: Deps, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    if (deps.link.isReady) deps.link.send({ t: 'heartbeat', n: deps.beats.next(), holds: deps.spool.holds() })
    const due = new AbortController()
    const stop = AbortSignal.any([signal, due.signal])
    await Promise.race([
      pause(deps.settings.current.heartbeatMs * (0.8 + 0.4 * Math.random()), stop),
      deps.beats.bell.wait(stop),
    ])
    due.abort()
  }
}
