import { Fault } from '@windlass/shared/errors.ts'
import type { WorkflowRef } from '@windlass/shared/ids.ts'
import type { Workflow } from '@windlass/shared/model/workflow.ts'
import type { Acting } from '../actor.ts'
import { record } from '../audit/record.ts'
import type { Db } from '../db/client.ts'
import { makeDisabled, makeEnabled } from './lifecycle.ts'
import { presentWorkflow } from './read.ts'
import * as store from './store.ts'
import { targetsChanged, type TargetsChange } from './targets.ts'

type SwitchDeps = TargetsChange & { db: Db }

/** No run of it starts; those that exist go on. Said again it changes nothing: the first who said so stays named. */
export function disableWorkflow(deps: SwitchDeps, caller: Acting, ref: WorkflowRef): Promise<Workflow> {
  return turn(deps, caller, ref, true)
}

export function enableWorkflow(deps: SwitchDeps, caller: Acting, ref: WorkflowRef): Promise<Workflow> {
  return turn(deps, caller, ref, false)
}

async function turn(deps: SwitchDeps, caller: Acting, ref: WorkflowRef, off: boolean): Promise<Workflow> {
  const { orgId } = caller
  const row = await deps.db.begin(async (tx) => {
    const workflow = await store.lock(tx, orgId, ref)
    if (!workflow) throw new Fault('NOT_FOUND', { workflow: ref })
    const { id, slug } = workflow
    const isOff = workflow.disabledAt !== null
    if (isOff !== off) {
      const which = { orgId, workflowId: id }
      await (off ? makeDisabled(tx, which, caller.id) : makeEnabled(tx, which))
      const target = { type: 'workflow', id, name: slug }
      const action = off ? 'workflows.disable' : 'workflows.enable'
      await record(tx, caller, { action, target, before: { disabled: isOff }, after: { disabled: off } })
    }
    return (await store.find(tx, orgId, id))!
  })
  targetsChanged(deps, orgId)
  return presentWorkflow(row)
}
