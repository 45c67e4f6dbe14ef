import { pause } from '@windlass/shared/time.ts'
import type { Bell } from '../bell.ts'
import type { Deps } from '../deps.ts'
import { fence } from './fence.ts'

/** Which heartbeats were answered. All times are of the monotonic clock: wall clocks jump. */
export interface Beats {
  /** Numbers a heartbeat that is being sent now, and promises to stop all runs after so long a silence. */
  next(fenceMs: number): number
  answered(n: number): void
  /** When the last heartbeat that was answered had been sent: every lease that it named holds from there. */
  heldFrom(): number
  /** What that one had promised: the coordinator holds the leases for longer. Undefined before the first one. */
  heldMs(): number | undefined
  /** Asks for a heartbeat before its time. */
  readonly bell: Bell
}

/** More than are ever under way; those that were lost with a connection must not pile up. */
const REMEMBERED = 20

export function createBeats(bell: Bell): Beats {
  const sent = new Map<number, { at: number; fenceMs: number }>()
  let count = 0
  let last = { at: -Infinity, fenceMs: Infinity }
  return {
    next(fenceMs) {
      count += 1
      sent.set(count, { at: performance.now(), fenceMs })
      sent.delete(count - REMEMBERED)
      return count
    },
    answered(n) {
      const found = sent.get(n)
      if (found && found.at > last.at) last = found
      sent.delete(n)
    },
    heldFrom: () => last.at,
    heldMs: () => (last.at === -Infinity ? undefined : last.fenceMs),
    bell,
  }
}

/** One heartbeat for all that is held, at intervals that differ so that a fleet does not beat as one. */
export async function heartbeatLoop(deps: Deps, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    // After a long sleep the leases are over, and nothing may be said that would renew them.
    fence(deps)
    if (deps.link.isReady) deps.link.send(deps.self.heartbeat(deps.beats.next(deps.settings.current.fenceMs)))
    const due = new AbortController()
    const stop = AbortSignal.any([signal, due.signal])
    await Promise.race([
      pause(deps.settings.current.heartbeatMs * (0.8 + 0.4 * Math.random()), stop),
      deps.beats.bell.wait(stop),
    ])
    due.abort()
  }
}
