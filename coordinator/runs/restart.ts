import { Fault } from '@windlass/shared/errors.ts'
import type { RunId } from '@windlass/shared/ids.ts'
import type { Run } from '@windlass/shared/model/run.ts'
import type { Acting } from '../actor.ts'
import { mayStart } from '../engine/commit/may-start.ts'
import type { MoveDeps } from '../engine/commit/move-runs.ts'
import { restartBlocked } from '../engine/commit/restart.ts'
import { presentRun } from '../engine/rules/run.ts'
import type { Targets } from '../workflows/targets.ts'
import type { TermsReader } from '../workflows/terms.ts'
import { find } from './store.ts'

type RestartDeps = { versionTerms: TermsReader; targets: Targets } & MoveDeps

/**
 * Lets a blocked run start again from the top, as its next attempt. What its former attempts bought is taken over where the
 * program asks for the same again, unless its descriptor wants a fresh start; what does not match is new work.
 */
export async function restartRun(deps: RestartDeps, caller: Acting, runId: RunId): Promise<Run> {
  const found = await find(deps.db, caller.orgId, runId)
  if (!found) throw new Fault('NOT_FOUND', { run: runId })
  await mayStart(deps, caller.orgId, { workflow: found.workflowId })
  await restartBlocked(deps, caller, runId, await deps.versionTerms.get(found.versionId))
  return presentRun((await find(deps.db, caller.orgId, runId))!)
}
