import { pause } from '@windlass/shared/time.ts'
import { fence } from '../lease/fence.ts'
import type { Link } from '../link/link.ts'
import type { Self } from '../link/self.ts'
import type { Needs } from '@windlass/shared/needs.ts'

type HeartbeatNeeds = Needs<typeof fence> & { link: Pick<Link, 'isReady' | 'send'>; self: Pick<Self, 'heartbeat'> }

/** One heartbeat for all that is held, at intervals that differ so that a fleet does not beat as one. */
export async function heartbeatLoop(deps: HeartbeatNeeds, signal: AbortSignal): Promise<void> {
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
