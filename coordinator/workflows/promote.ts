import { Fault } from '@windlass/shared/errors.ts'
import type { WorkflowRef } from '@windlass/shared/ids.ts'
import type { Workflow } from '@windlass/shared/model/workflow.ts'
import type { Acting } from '../actor.ts'
import { record } from '../audit/record.ts'
import type { Db } from '../db/client.ts'
import { makeCurrent } from './lifecycle.ts'
import { presentWorkflow } from './read.ts'
import * as store from './store.ts'
import { targetsChanged, type TargetsChange } from './targets.ts'

/** Makes a version current that is there, older or newer. Runs that exist keep theirs. */
export async function promoteVersion(
  deps: TargetsChange & { db: Db },
  caller: Acting,
  ref: WorkflowRef,
  number: number,
): Promise<Workflow> {
  const { orgId } = caller
  const row = await deps.db.begin(async (tx) => {
    const workflow = await store.lock(tx, orgId, ref)
    if (!workflow) throw new Fault('NOT_FOUND', { workflow: ref })
    const { id, slug, version: before } = workflow
    const chosen = await store.findVersion(tx, orgId, id, number)
    if (!chosen) throw new Fault('NOT_FOUND', { workflow: ref, version: number })
    const { version, descriptor } = chosen
    if (version !== before) {
      await makeCurrent(tx, { orgId, workflowId: id, version, descriptor })
      const target = { type: 'workflow', id, name: slug }
      const change = { action: 'workflows.promote', target, before: { version: before }, after: { version } }
      await record(tx, caller, change)
    }
    return (await store.find(tx, orgId, id))!
  })
  targetsChanged(deps, orgId)
  return presentWorkflow(row)
}
