import { Fault } from '@windlass/shared/errors.ts'
import type { RunId } from '@windlass/shared/ids.ts'
import type { Run } from '@windlass/shared/model/run.ts'
import type { Caller } from '../actor.ts'
import type { Deps } from '../deps.ts'
import * as store from './store.ts'
import { type TriggerDeps, triggerRun } from './trigger.ts'

/** A new run with the input, environment, tags and priority of an earlier one, on the current version unless one is named. */
export async function retryRun(
  deps: TriggerDeps & Pick<Deps, 'db'>,
  caller: Caller,
  runId: RunId,
  version: number | undefined,
): Promise<Run> {
  const [run, payload] = await Promise.all([
    store.find(deps.db, caller.orgId, runId),
    store.payloads(deps.db, caller.orgId, runId),
  ])
  if (!run || !payload) throw new Fault('NOT_FOUND', { run: runId })
  return triggerRun(deps, caller, {
    workflow: run.workflowId,
    version,
    input: JSON.parse(payload.input) as unknown,
    environment: run.environment,
    tags: run.tags,
    priority: run.priority,
    trigger: { kind: 'retry', id: runId },
    retryOf: runId,
  })
}
