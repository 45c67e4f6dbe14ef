import type { RunnerId } from '@windlass/shared/ids.ts'
import { probe } from '@windlass/shared/probe.ts'
import { pause } from '@windlass/shared/time.ts'
import * as placements from '../store/placements.ts'
import { lightPieces } from '../commit/light-piece.ts'
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

/** Time for what one look has found: runs with long journals take most of a second each. */
const LOOK_MS = 1000

async function sweepOnce(deps: SweepDeps): Promise<number> {
  const overdue = await placements.overdue(deps.db, deps.config.offerMs, pulseLimitMs(deps.config))
  const unaccepted: RunnerId[] = []
  const since = performance.now()
  const pieces = await lightPieces(
    deps.db,
    overdue.map((row) => row.runId),
  )
  let lost = 0
  for (const piece of pieces) {
    lost += await loseRuns(deps, piece, {
      reason: 'its agent was not heard of until the lease ran out',
      isLost: (placement) => (placement.accepted ? placement.leaseOver : placement.offerLate),
      onLost: (placement) => void (placement.accepted || unaccepted.push(placement.runnerId)),
    })
    // What is left is found by the next look, with what others have lost meanwhile before it.
    if (performance.now() - since > LOOK_MS) break
  }
  if (unaccepted.length > 0) await deps.runnerNotes.unaccepted(unaccepted)
  return lost
}
