import type { RunnerId } from '@windlass/shared/ids.ts'
import { probe } from '@windlass/shared/probe.ts'
import { pause } from '@windlass/shared/time.ts'
import * as placements from '../store/placements.ts'
import { type LoseDeps, loseRuns } from '../commit/lose.ts'
import { createPulse } from '../commit/pulse.ts'
import type { RunnerNotes } from '../commit/runner-notes.ts'
import { pulseLimitMs } from '../store/pulse.ts'

type SweepDeps = Parameters<typeof createPulse>[0] & LoseDeps & { runnerNotes: RunnerNotes }

/**
 * Looks for offers that nobody took and leases that ran out; never without a pulse before it, which lengthens them
 * after an outage of ours.
 */
export async function sweepPlacements(deps: SweepDeps, signal: AbortSignal): Promise<void> {
  const pulse = createPulse(deps)
  let look = pulse
  while (!signal.aborted) {
    try {
      await look()
    } catch (error) {
      deps.log.warn('sweep.failed', { error })
    }
    await pause(deps.config.sweepMs, signal)
    look = async () => {
      await pulse()
      await sweepOnce(deps)
      probe('sweep.done', { of: 'placements' })
    }
  }
}

async function sweepOnce(deps: SweepDeps): Promise<number> {
  const overdue = await placements.overdue(deps.db, deps.config.offerMs, pulseLimitMs(deps.config))
  const unaccepted: RunnerId[] = []
  const lost = await loseRuns(
    deps,
    overdue.map((row) => row.runId),
    {
      reason: 'its agent was not heard of until the lease ran out',
      isLost: (placement) => (placement.accepted ? placement.leaseOver : placement.offerLate),
      onLost: (placement) => void (placement.accepted || unaccepted.push(placement.runnerId)),
    },
  )
  if (unaccepted.length > 0) await deps.runnerNotes.unaccepted(unaccepted)
  return lost
}
