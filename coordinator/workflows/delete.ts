import { Fault } from '@windlass/shared/errors.ts'
import type { WorkflowRef } from '@windlass/shared/ids.ts'
import { isFinal, RUN_STATUSES } from '@windlass/shared/model/run.ts'
import type { Workflow } from '@windlass/shared/model/workflow.ts'
import type { Acting } from '../actor.ts'
import { record } from '../audit/record.ts'
import { addJob } from '../bulk/start.ts'
import { type Db, PostgresError, type Tx } from '../db/client.ts'
import { type CancelDeps, cancelWithin, tellCancelled } from '../engine/commit/cancel.ts'
import { lightPiece } from '../engine/commit/light-piece.ts'
import type { Moving } from '../engine/rules/run.ts'
import { listRunIds } from '../runs/read.ts'
import { makeDeleted, makeRestored } from './lifecycle.ts'
import { presentWorkflow } from './read.ts'
import * as store from './store.ts'
import { lockDeleted } from './store-lifecycle.ts'
import { targetsChanged, type TargetsChange } from './targets.ts'

type DeleteDeps = CancelDeps & TargetsChange & { db: Db }

/** Soft: it may be restored for 30 days. Its runs go on, or are cancelled with it. */
export async function deleteWorkflow(
  deps: DeleteDeps,
  caller: Acting,
  ref: WorkflowRef,
  runs: 'keep' | 'cancel',
): Promise<void> {
  const { orgId } = caller
  const moved = await deps.db.begin(async (tx) => {
    const workflow = await store.lock(tx, orgId, ref)
    if (!workflow) throw new Fault('NOT_FOUND', { workflow: ref })
    const { id, slug, version } = workflow
    await makeDeleted(tx, { orgId, workflowId: id }, caller.id)
    const { moved, after } = runs === 'cancel' ? await cancelRuns(tx, deps, caller, workflow) : NONE
    const target = { type: 'workflow', id, name: slug }
    await record(tx, caller, { action: 'workflows.delete', target, before: { slug, version }, after })
    return moved
  })
  targetsChanged(deps, orgId)
  await tellCancelled(deps, moved)
}

interface Cancelled {
  moved: Moving[]
  /** For the audit log. */
  after: object | null
}

const NONE: Cancelled = { moved: [], after: null }
/** More, or those with long journals, are left to a job: each is locked until the commit. */
const MOST_AT_ONCE = 1000

async function cancelRuns(
  tx: Tx,
  deps: DeleteDeps,
  caller: Acting,
  { id, slug }: store.LockedWorkflow,
): Promise<Cancelled> {
  const { orgId } = caller
  const status = RUN_STATUSES.filter((one) => !isFinal(one))
  const ids = await listRunIds(tx, { orgId, workflowId: id, status, limit: MOST_AT_ONCE + 1 })
  const reason = `its workflow ${slug} was deleted`
  if (ids.length > MOST_AT_ONCE || (await lightPiece(tx, ids)).length < ids.length) {
    const ask = { kind: 'workflow-delete', filter: { workflow: id }, reason, dryRun: false } as const
    const { row } = await addJob(tx, caller, ask)
    return { moved: [], after: { job: row.id } }
  }
  const moved = await cancelWithin(tx, deps, ids, { by: caller.id, reason, descentInMs: 0 })
  return { moved, after: { cancelledRuns: moved.length } }
}

/** The same ids and versions, under the slug that it had, or another. */
export async function restoreWorkflow(
  deps: TargetsChange & { db: Db },
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
  targetsChanged(deps, orgId)
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
