import type { RunnerId } from '@windlass/shared/ids.ts'
import { pause } from '@windlass/shared/time.ts'
import type { Deps } from '../deps.ts'
import * as placements from './store.ts'
import { noteUnaccepted } from '../runners/intake.ts'
import { loseRuns } from './lose.ts'

/**
 * Looks for offers that nobody took and leases that ran out. In the first minutes of a coordinator no lease is taken
 * away: while it was down no agent could renew, and an outage of ours must kill nobody's run.
 */
export async function sweepPlacements(deps: Deps, signal: AbortSignal): Promise<void> {
  const startedAt = performance.now()
  while (!signal.aborted) {
    await pause(deps.config.sweepMs, signal)
    if (signal.aborted) return
    const amnesty = performance.now() - startedAt < deps.config.amnestyMs
    try {
      await sweepOnce(deps, !amnesty)
    } catch (error) {
      deps.log.warn('sweep.failed', { error })
    }
  }
}

async function sweepOnce(deps: Deps, leases: boolean): Promise<number> {
  const overdue = await placements.overdue(deps.db, deps.config.offerMs, leases)
  const unaccepted: RunnerId[] = []
  const lost = await loseRuns(
    deps,
    overdue.map((row) => row.runId),
    {
      reason: 'its agent was not heard of until the lease ran out',
      isLost: (placement) => (placement.accepted ? leases && placement.leaseOver : placement.offerLate),
      onLost: (placement) => void (placement.accepted || unaccepted.push(placement.runnerId)),
    },
  )
  await noteUnaccepted(deps, unaccepted)
  return lost
}
