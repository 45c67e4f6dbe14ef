import type { Log } from '@windlass/shared/log.ts'
import { probe } from '@windlass/shared/probe.ts'
import { pause } from '@windlass/shared/time.ts'
import { ourselves } from '../audit/ourselves.ts'
import { record } from '../audit/record.ts'
import { type CancelDeps, cancelForUs } from '../engine/commit/cancel.ts'
import { type DoubtDeps, doubtfulAfterMs, isRunnerInDoubt } from '../engine/commit/in-doubt.ts'
import { type IntakeDeps, liftOldCordons } from './intake.ts'
import * as store from './store-intake.ts'

type DeadlineDeps = CancelDeps & IntakeDeps & DoubtDeps & { log: Log }

/**
 * Ends what executes on runners whose drain was to be over by now, where whoever drained them wanted that, and our own
 * cordons.
 */
export async function watchDeadlines(deps: DeadlineDeps, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    await pause(deps.config.sweepMs, signal)
    if (signal.aborted) return
    try {
      await endDueDrains(deps)
      await liftOldCordons(deps)
      probe('sweep.done', { of: 'deadlines' })
    } catch (error) {
      deps.log.warn('deadlines.failed', { error })
    }
  }
}

/**
 * Of all coordinators the first writes the entry of the audit log. Cancelling is done by each that looks, until nothing
 * executes there that nobody has asked to stop: one that is killed half-way leaves nothing behind, and a run is
 * cancelled once.
 */
async function endDueDrains(deps: DeadlineDeps): Promise<void> {
  const isInDoubt = isRunnerInDoubt(deps.db, doubtfulAfterMs(deps))
  for (const drain of await store.dueDrains(deps.db, isInDoubt)) {
    // One that fails must not keep the others from their end.
    await endDueDrain(deps, drain).catch((error: unknown) =>
      deps.log.warn('deadline.failed', { runnerId: drain.runnerId, error }),
    )
  }
}

async function endDueDrain(deps: DeadlineDeps, drain: store.DueDrain): Promise<void> {
  const runIds = await store.executingOn(deps.db, drain.runnerId)
  const taken = await deps.db.begin(async (tx) => {
    const taken = await store.takeDeadline(tx, drain.runnerId)
    if (!taken?.isFirst) return taken
    const target = { type: 'runner', id: drain.runnerId, name: drain.name }
    await record(tx, ourselves(drain.orgId), { action: 'runners.drainDeadline', target, after: { cancelled: runIds } })
    return taken
  })
  // Somebody has resumed it meanwhile.
  if (!taken) return
  if (taken.isFirst) deps.log('drain.deadline', { runnerId: drain.runnerId, runs: runIds.length })
  const reason = `the drain of the runner ${drain.name} had its deadline${drain.reason && `: ${drain.reason}`}`
  await cancelForUs(deps, runIds, reason)
}
