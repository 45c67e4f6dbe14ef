import { Fault } from '@windlass/shared/errors.ts'
import type { RunId } from '@windlass/shared/ids.ts'
import type { Run } from '@windlass/shared/model/run.ts'
import type { Acting } from '../actor.ts'
import { becauseOf, type CancelDeps, cancelDescendants, cancelThese } from '../engine/commit/cancel.ts'
import type { OrgTurns } from '../limits/org-turns.ts'
import { presentRun } from '../engine/rules/run.ts'
import { find } from './store.ts'

/**
 * What has no process ends here and now; what has one ends when its processes are proved gone. Everything that the run
 * has called, and what that has called, is cancelled with it: for seconds while the caller waits, then by a job.
 */
export async function cancelRun(
  deps: CancelDeps & { turns: { orgDescents: OrgTurns } },
  caller: Acting,
  runId: RunId,
  reason: string,
): Promise<Run> {
  const run = await find(deps.db, caller.orgId, runId)
  if (!run) throw new Fault('NOT_FOUND', { run: runId })
  await cancelThese(deps, [runId], { by: caller.id, reason, caller })
  const after = (await find(deps.db, caller.orgId, runId))!
  if (after.status === 'completed' || after.status === 'failed')
    throw new Fault('RUN_ALREADY_FINISHED', { run: runId, status: after.status })
  const below = { by: caller.id, reason: becauseOf(runId, reason) }
  const { orgId } = caller
  // Also below one that was cancelled before: should its job be stuck, asking again is a way out.
  if (after.status === 'cancelling' || after.status === 'cancelled')
    await deps.turns.orgDescents.runIfFree(orgId, () => cancelDescendants(deps, { orgId, runId }, below))
  return presentRun((await find(deps.db, caller.orgId, runId))!)
}
