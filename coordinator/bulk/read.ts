import { Fault } from '@windlass/shared/errors.ts'
import type { JobId, OrgId } from '@windlass/shared/ids.ts'
import type { Job } from '@windlass/shared/model/job.ts'
import { ops } from '@windlass/shared/ops/index.ts'
import { authorize } from '../accounts/authorize.ts'
import type { Acting, Caller } from '../actor.ts'
import { record } from '../audit/record.ts'
import type { Author } from '../audit/row.ts'
import type { Db, Tx } from '../db/client.ts'
import { countFitting } from '../db/page-bytes.ts'
import { presentJob } from './row.ts'
import * as store from './store.ts'

/** So many of the page as fit into one answer, and the one behind them. */
export async function listJobs(
  { db }: { db: Db },
  orgId: OrgId,
  page: store.JobPage,
): Promise<{ jobs: Job[]; fitting: number }> {
  const fitting = countFitting(await store.sizes(db, orgId, page))
  const rows = await store.list(db, orgId, { ...page, limit: fitting + 1 })
  return { jobs: rows.map(presentJob), fitting }
}

export async function getJob(deps: { db: Db }, { orgId }: Caller, id: JobId): Promise<Job> {
  const row = await store.findOf(deps.db, orgId, id)
  if (!row) throw new Fault('NOT_FOUND', { job: id })
  return presentJob(row)
}

/**
 * A piece of a bulk cancel that is under way is done to its end. Said again it changes nothing. To cancel the job
 * of a deleted workflow takes the right to delete one.
 */
export async function cancelJob(deps: { db: Db }, caller: Acting, id: JobId): Promise<Job> {
  const { orgId } = caller
  const row = await deps.db.begin(async (tx) => {
    const found = await store.findOf(tx, orgId, id)
    if (!found) throw new Fault('NOT_FOUND', { job: id })
    if (found.kind === 'workflow-delete') authorize(ops.workflows.delete, caller)
    const isStopped = await store.finish(tx, id, { status: 'cancelled' })
    const after = (await store.findOf(tx, orgId, id))!
    if (!isStopped && after.status !== 'cancelled') throw ended(after.status, id)
    const { matched, done, failed } = after
    const target = { type: 'job', id }
    if (isStopped) await record(tx, caller, { action: 'jobs.cancel', target, after: { matched, done, failed } })
    return after
  })
  return presentJob(row)
}

/**
 * Cancels the bulk jobs of a key or session of this org that is being revoked; answers how many. The deletion of a
 * workflow goes on: it is deleted already.
 */
export async function cancelJobsOf(tx: Tx, by: Author, author: string): Promise<number> {
  const error = 'The key or session that had asked for it was revoked; what it has done stays done.'
  const jobs = await store.finishOf(tx, by.orgId, { author, error })
  for (const { id, ...after } of jobs)
    await record(tx, by, { action: 'jobs.cancel', target: { type: 'job', id }, after })
  return jobs.length
}

function ended(status: string, job: JobId): Fault {
  return new Fault('CONFLICT', { job, status }, `The job has ${status}: there is nothing left to cancel.`)
}
