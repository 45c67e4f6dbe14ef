import { pause } from '@windlass/shared/time.ts'
import { type Author, record } from '../audit/record.ts'
import type { Deps } from '../deps.ts'
import { cancelForUs, type CancelDeps } from '../runs/cancel.ts'
import * as store from './store-intake.ts'

type DeadlineDeps = CancelDeps & Pick<Deps, 'log'>

/** Ends what executes on runners whose drain was to be over by now, where whoever drained them wanted that. */
export async function watchDeadlines(deps: DeadlineDeps, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    await pause(deps.config.sweepMs, signal)
    if (signal.aborted) return
    try {
      await endDueDrains(deps)
    } catch (error) {
      deps.log.warn('deadlines.failed', { error })
    }
  }
}

/**
 * Of all coordinators the first writes the entry of the audit log. Cancelling is done by each that looks, until nothing executes
 * there that nobody has asked to stop: one that is killed half-way leaves nothing behind, and a run is cancelled once.
 */
async function endDueDrains(deps: DeadlineDeps): Promise<void> {
  for (const drain of await store.dueDrains(deps.db)) {
    const runIds = await store.executingOn(deps.db, drain.runnerId)
    if (runIds.length === 0) continue
    const isFirst = await deps.db.begin(async (tx) => {
      if (!(await store.takeDeadline(tx, drain.runnerId))) return false
      const target = { type: 'runner', id: drain.runnerId, name: drain.name }
      await record(tx, ourselves(drain), { action: 'runners.drainDeadline', target, after: { cancelled: runIds } })
      return true
    })
    if (isFirst) deps.log('drain.deadline', { runnerId: drain.runnerId, runs: runIds.length })
    const reason = `the drain of the runner ${drain.name} had its deadline${drain.reason && `: ${drain.reason}`}`
    await cancelForUs(deps, { orgId: drain.orgId, runIds }, reason)
  }
}

function ourselves({ orgId }: store.DueDrain): Author {
  return { kind: 'system', id: 'coordinator', name: 'coordinator', orgId, via: 'system', requestId: null }
}
