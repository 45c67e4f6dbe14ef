import { Fault } from '@windlass/shared/errors.ts'
import type { WorkflowRef } from '@windlass/shared/ids.ts'
import type { Workflow } from '@windlass/shared/model/workflow.ts'
import type { Acting } from '../actor.ts'
import { record } from '../audit/record.ts'
import { type Db, PostgresError } from '../db/client.ts'
import { makeDeleted, makeRestored } from './lifecycle.ts'
import { presentWorkflow } from './read.ts'
import * as store from './store.ts'
import { lockDeleted } from './store-lifecycle.ts'
import type { Targets } from './targets.ts'

type DeleteDeps = { db: Db; targets: Targets }

/** Soft: it may be restored for 30 days. Runs that exist go on. */
export async function deleteWorkflow(deps: DeleteDeps, caller: Acting, ref: WorkflowRef): Promise<void> {
  const { orgId } = caller
  await deps.db.begin(async (tx) => {
    const workflow = await store.lock(tx, orgId, ref)
    if (!workflow) throw new Fault('NOT_FOUND', { workflow: ref })
    const { id, slug, version } = workflow
    await makeDeleted(tx, { orgId, workflowId: id }, caller.id)
    const target = { type: 'workflow', id, name: slug }
    await record(tx, caller, { action: 'workflows.delete', target, before: { slug, version } })
  })
  deps.targets.forget(orgId)
}

/** The same ids and versions, under the slug that it had, or another. */
export async function restoreWorkflow(
  deps: DeleteDeps,
  caller: Acting,
  ref: WorkflowRef,
  slug: string | undefined,
): Promise<Workflow> {
  const { orgId } = caller
  const row = await deps.db.begin(async (tx) => {
    const workflow = await lockDeleted(tx, orgId, ref)
    if (!workflow) throw notRestorable(ref)
    const { id } = workflow
    const wanted = slug ?? workflow.slug
    await makeRestored(tx, { orgId, workflowId: id }, wanted).catch((error: unknown) => {
      throw isTaken(error) ? taken(wanted, slug !== undefined) : error
    })
    const target = { type: 'workflow', id, name: wanted }
    await record(tx, caller, { action: 'workflows.restore', target, after: { slug: wanted } })
    return (await store.find(tx, orgId, id))!
  })
  deps.targets.forget(orgId)
  return presentWorkflow(row)
}

const isTaken = (error: unknown) => error instanceof PostgresError && error.constraint_name === 'workflows_by_slug'

function notRestorable(ref: WorkflowRef): Fault {
  const what = `No workflow \`${ref}\` was deleted in this org within the last 30 days`
  const message = `${what}; \`?deleted=true\` lists those that were.`
  return new Fault('NOT_FOUND', { workflow: ref }, message)
}

function taken(slug: string, isAsked: boolean): Fault {
  const way = isAsked ? 'take another' : 'give it another by `slug`'
  const message = `Another workflow has the slug \`${slug}\` by now: ${way}, or delete that one first.`
  return new Fault('WORKFLOW_EXISTS', { path: 'slug', slug }, message)
}
