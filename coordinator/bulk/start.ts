import { Fault } from '@windlass/shared/errors.ts'
import { newId, type OrgId } from '@windlass/shared/ids.ts'
import type { BulkFilter, Job, JobKind } from '@windlass/shared/model/job.ts'
import { isFinal, type RunStatus } from '@windlass/shared/model/run.ts'
import type { Callers } from '../accounts/callers.ts'
import type { Acting } from '../actor.ts'
import { record } from '../audit/record.ts'
import type { Db, Tx } from '../db/client.ts'
import type { EnvironmentNames } from '../environments/names.ts'
import { canonicalHash } from '../canonical-hash.ts'
import { findWorkflow } from '../workflows/read.ts'
import { enqueueTurn } from './turns.ts'
import { type JobRow, presentJob } from './row.ts'
import * as store from './store.ts'

export interface BulkAsk {
  kind: Exclude<JobKind, 'workflow-delete'>
  filter: BulkFilter
  reason: string
  dryRun: boolean
  idempotencyKey?: string | undefined
}

type StartDeps = { db: Db; environments: EnvironmentNames; callers: Pick<Callers, 'hold'> }

/**
 * Begins to do something to all runs that a filter finds. What it did is recorded when it has ended. Whoever asks the
 * same under the same key is answered the first job.
 */
export async function startBulk(
  deps: StartDeps,
  caller: Acting,
  { idempotencyKey, ...ask }: BulkAsk,
): Promise<{ job: Job; isNew: boolean }> {
  assertFilter(ask)
  const key =
    idempotencyKey === undefined ? null : { key: idempotencyKey, requestHash: await hashOf(ask, caller.orgId) }
  // What was begun once is answered, also when its workflow is gone by now.
  const first = key && (await store.findByKey(deps.db, caller.orgId, key.key))
  if (first) return { job: presentJob(same(first, key)), isNew: false }
  const filter = await resolved(deps, caller, ask.filter)
  const { row, isNew } = await deps.db.begin(async (tx) => {
    // It ends with its credential: one that is revoked meanwhile begins nothing.
    await deps.callers.hold(tx, caller)
    return addJob(tx, caller, { ...ask, filter, key })
  })
  return { job: presentJob(row), isNew }
}

async function hashOf({ kind, filter, dryRun }: BulkAsk, orgId: OrgId): Promise<Buffer> {
  return (await canonicalHash({ kind, filter, dryRun }, orgId)).digest()
}

function same(first: store.KeyedJobRow, { requestHash }: store.JobKey): JobRow {
  if (first.requestHash.equals(requestHash)) return first
  const begun = `This idempotency key began the job ${first.id} with another request.`
  const message = `${begun} Send that request again, or take another key for this one.`
  throw new Fault('IDEMPOTENCY_CONFLICT', { path: 'idempotencyKey', job: first.id }, message)
}

type NewJobAsk = Omit<BulkAsk, 'kind' | 'idempotencyKey'> & { kind: JobKind; key?: store.JobKey | null }

/** In the transaction of whoever has a reason. Throws CONFLICT while another one of its kind is under way. */
export async function addJob(tx: Tx, caller: Acting, { key = null, ...ask }: NewJobAsk) {
  const { kind: by, id: byId, name, orgId, requestId, via } = caller
  const author = { kind: by, id: byId, name, orgId, requestId, via } as Acting
  const job = { ...ask, id: newId('job'), orgId, author, key }
  if (!(await store.insert(tx, job))) {
    const first = key && (await store.findByKey(tx, orgId, key.key))
    if (first) return { row: same(first, key), isNew: false }
    throw busy(ask.kind, await store.underWay(tx, job))
  }
  await enqueueTurn(tx, orgId)
  const { kind, filter, reason, dryRun, id } = job
  if (kind !== 'workflow-delete' && !dryRun)
    await record(tx, caller, {
      action: kind === 'bulk-cancel' ? 'runs.bulkCancel' : 'runs.bulkRetry',
      target: { type: 'job', id },
      after: { filter, ...(reason && { reason }) },
    })
  return { row: (await store.findOf(tx, orgId, id))!, isNew: true }
}

function busy(kind: JobKind, job: string | undefined): Fault {
  const which = job === undefined ? 'A job' : `The job ${job}`
  const message = `${which} of the kind \`${kind}\` is under way in this org: let it end, or cancel it.`
  return new Fault('CONFLICT', { kind, ...(job && { job }) }, message)
}

function assertFilter({ kind, filter }: BulkAsk): void {
  const { all = false, ...members } = filter
  if (!all && Object.values(members).every((value) => value === undefined))
    throw refused('filter', 'is empty: name at least one member, or `all: true` for all runs of the org')
  const { status, tag } = filter
  if (tag?.includes('\0')) throw refused('filter.tag', 'holds U+0000, which no tag does')
  if (status === undefined || status.some((one) => isTakenBy(kind, one))) return
  const why = kind === 'bulk-retry' ? 'only finished runs are retried' : 'a finished run cannot be cancelled'
  throw refused('filter.status', `finds nothing: ${why}`)
}

export const isTakenBy = (kind: JobKind, status: RunStatus) => isFinal(status) === (kind === 'bulk-retry')

function refused(path: string, fault: string): Fault {
  return new Fault('VALIDATION_FAILED', { path }, `\`${path}\` ${fault}.`)
}

/** Names may mean something else tomorrow, so the job keeps the workflow's id. Runs have the environment's name. */
async function resolved(deps: StartDeps, caller: Acting, filter: BulkFilter): Promise<BulkFilter> {
  const { orgId } = caller
  const { workflow, environment } = filter
  const found = workflow === undefined ? undefined : await findWorkflow(deps, orgId, workflow)
  if (workflow !== undefined && found === undefined)
    throw new Fault('NOT_FOUND', { path: 'filter.workflow', workflow }, `There is no workflow \`${workflow}\` here.`)
  // By its name also runs of one that is gone are found.
  const isId = environment?.includes('_') ?? false
  const name = isId ? await deps.environments.find(orgId, environment!) : environment
  if (isId && name === undefined)
    throw new Fault('NOT_FOUND', { path: 'filter.environment' }, `There is no environment \`${environment}\` here.`)
  return { ...filter, ...(found && { workflow: found.id }), ...(name !== undefined && { environment: name }) }
}
