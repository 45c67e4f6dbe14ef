import type { JobId, OrgId, RunId } from '@windlass/shared/ids.ts'
import type { BulkFilter, JobKind, JobStatus } from '@windlass/shared/model/job.ts'
import type { Author } from '../audit/row.ts'
import { onlyFilters } from '../db/by-key.ts'
import type { Db, Sql, Tx } from '../db/client.ts'
import { unnest } from '../db/unnest.ts'
import type { BareJobRow, JobRow } from './row.ts'

export interface NewJob {
  id: JobId
  orgId: OrgId
  kind: JobKind
  filter: BulkFilter
  dryRun: boolean
  reason: string
  author: Author
  key: JobKey | null
}

/** By which a request is known when it comes again. */
export interface JobKey {
  key: string
  /** SHA-256. */
  requestHash: Buffer
}

/** A job that takes longer is too large, or held up by something that does not pass. */
export const DEADLINE_MS = 24 * 3_600_000

/** False: one of its kind is under way, or one has its key. */
export async function insert(tx: Tx, job: NewJob): Promise<boolean> {
  const rows = await tx`
    insert into bulk_jobs (id, org_id, kind, filter, dry_run, reason, author, idempotency_key, request_hash,
                           deadline_at)
    values (${job.id}, ${job.orgId}, ${job.kind}, ${JSON.stringify(job.filter)}::text::json, ${job.dryRun},
            ${job.reason}, ${JSON.stringify(job.author)}::text::json, ${job.key?.key ?? null},
            ${job.key?.requestHash ?? null},
            now() + ${DEADLINE_MS} * interval '1 millisecond')
    on conflict do nothing
    returning id`
  return rows.length > 0
}

export async function underWay(sql: Sql, job: Pick<NewJob, 'orgId' | 'kind' | 'dryRun'>): Promise<JobId | undefined> {
  const [row] = await sql<{ id: JobId }[]>`
    select id
    from bulk_jobs
    where org_id = ${job.orgId} and kind = ${job.kind} and dry_run = ${job.dryRun} and finished_at is null`
  return row?.id
}

const bareColumns = (sql: Sql) => sql`
  j.id, j.org_id, o.slug as org, j.kind, j.filter, j.dry_run, j.reason, j.author, j.status, j.error, j.listed_to,
  j.is_listed, j.matched, j.done, j.failed, j.created_at, j.deadline_at, j.finished_at,
  j.deadline_at < now() as is_overdue`

const jobs = (sql: Sql) => sql`
  select ${bareColumns(sql)},
         (
           select json_object_agg(f.error, f.count)
           from (
             select error, count(*)::int as count
             from bulk_job_runs
             where job_id = j.id and error is not null
             group by error
           ) f
         ) as failures
  from bulk_jobs j
  join orgs o on o.id = j.org_id`

/** For whoever works on it: to count its failures before each piece would take longer than all the pieces. */
export async function findBare(sql: Sql, id: JobId): Promise<BareJobRow | undefined> {
  const [row] = await sql<BareJobRow[]>`
    select ${bareColumns(sql)}
    from bulk_jobs j
    join orgs o on o.id = j.org_id
    where j.id = ${id}`
  return row
}

export async function findOf(sql: Sql, orgId: OrgId, id: JobId): Promise<JobRow | undefined> {
  const [row] = await sql<JobRow[]>`${jobs(sql)} where j.id = ${id} and ${onlyFilters(sql, sql`j.org_id = ${orgId}`)}`
  return row
}

export type KeyedJobRow = JobRow & { requestHash: Buffer }

/** The job that was begun under this key. */
export async function findByKey(sql: Sql, orgId: OrgId, key: string): Promise<KeyedJobRow | undefined> {
  const [row] = await sql<KeyedJobRow[]>`
    select found.*, k.request_hash
    from (select id, request_hash from bulk_jobs where idempotency_key = ${key} and org_id = ${orgId}) k
    cross join lateral (${jobs(sql)} where j.id = k.id) found`
  return row
}

export interface JobPage {
  status: JobStatus | undefined
  before: string | undefined
  limit: number
}

export function list(db: Db, orgId: OrgId, page: JobPage): Promise<JobRow[]> {
  return db<JobRow[]>`${jobs(db)} ${pageOf(db, orgId, page)}`
}

/** How many bytes the texts of each job of the page have. */
export function sizes(db: Db, orgId: OrgId, page: JobPage): Promise<{ bytes: number }[]> {
  return db<{ bytes: number }[]>`
    select octet_length(j.filter::text) + coalesce(octet_length(j.error), 0) as bytes
    from bulk_jobs j
    ${pageOf(db, orgId, page)}`
}

function pageOf(sql: Sql, orgId: OrgId, { status, before, limit }: JobPage) {
  return sql`
    where j.org_id = ${orgId}
    ${status === undefined ? sql`` : sql`and j.status = ${status}`}
    ${before === undefined ? sql`` : sql`and j.id < ${before}`}
    order by j.id desc
    limit ${limit}`
}

/** Notes runs that were found. False: somebody else was at it, or the job is over. */
export async function addFound(
  tx: Tx,
  job: Pick<JobRow, 'id' | 'listedTo' | 'dryRun'>,
  found: { ids: readonly RunId[]; lookedTo: string | undefined; isAll: boolean },
): Promise<boolean> {
  const { ids, isAll } = found
  const listedTo = found.lookedTo ?? job.listedTo
  const rows = await tx`
    update bulk_jobs
    set listed_to = ${listedTo}, is_listed = ${isAll}, matched = matched + ${ids.length}
    where id = ${job.id} and listed_to is not distinct from ${job.listedTo} and not is_listed and finished_at is null
    returning id`
  if (rows.length === 0) return false
  if (!job.dryRun && ids.length > 0)
    await tx`insert into bulk_job_runs (job_id, run_id) select ${job.id}, unnest(${[...ids]}::text[])`
  return true
}

/** Runs to which nothing was done yet. */
export async function takeRuns(db: Db, id: JobId, limit: number): Promise<RunId[]> {
  const rows = await db<{ runId: RunId }[]>`
    select run_id
    from bulk_job_runs
    where job_id = ${id} and error is null
    order by run_id
    limit ${limit}`
  return rows.map(({ runId }) => runId)
}

/** False: it has ended. Otherwise it does not before this transaction. */
export async function lockUnderWay(tx: Tx, id: JobId): Promise<boolean> {
  const rows = await tx`select from bulk_jobs where id = ${id} and finished_at is null for update`
  return rows.length > 0
}

/** Takes runs away, for whoever has done it in this transaction, or before. Answers those that were there. */
export async function settle(tx: Tx, id: JobId, runIds: readonly RunId[]): Promise<Set<RunId>> {
  if (runIds.length === 0) return new Set()
  const rows = await tx<{ runId: RunId }[]>`
    delete from bulk_job_runs
    where job_id = ${id} and run_id = any(${[...runIds]}) and error is null
    returning run_id`
  await count(tx, id, { done: rows.length, failed: 0 })
  return new Set(rows.map(({ runId }) => runId))
}

export interface Failure {
  runId: RunId
  error: string
}

export async function noteFailures(tx: Tx, id: JobId, failures: readonly Failure[]): Promise<void> {
  if (failures.length === 0) return
  const rows = await tx`
    update bulk_job_runs j
    set error = f.error
    from ${unnest(tx, 'f', failures, { runId: 'text', error: 'text' })}
    where j.job_id = ${id} and j.run_id = f.run_id and j.error is null
    returning j.run_id`
  await count(tx, id, { done: 0, failed: rows.length })
}

async function count(tx: Tx, id: JobId, { done, failed }: { done: number; failed: number }): Promise<void> {
  await tx`update bulk_jobs set done = done + ${done}, failed = failed + ${failed} where id = ${id}`
}

/** False: it had ended. */
export async function finish(
  tx: Tx,
  id: JobId,
  end: { status: Exclude<JobStatus, 'running'>; error?: string },
): Promise<boolean> {
  const rows = await tx`
    update bulk_jobs
    set status = ${end.status}, error = ${end.error ?? null}, finished_at = now()
    where id = ${id} and finished_at is null
    returning id`
  return rows.length > 0
}

/** Cancels those of an author that are under way. */
export function finishOf(
  tx: Tx,
  orgId: OrgId,
  { author, error }: { author: string; error: string },
): Promise<Pick<JobRow, 'id' | 'matched' | 'done' | 'failed'>[]> {
  return tx<Pick<JobRow, 'id' | 'matched' | 'done' | 'failed'>[]>`
    update bulk_jobs
    set status = 'cancelled', error = ${error}, finished_at = now()
    where org_id = ${orgId} and finished_at is null and kind <> 'workflow-delete' and author ->> 'id' = ${author}
    returning id, matched, done, failed`
}

/** How those of these runs stand that were not asked to stop. */
export function notCancelled(db: Db, ids: readonly RunId[]): Promise<{ id: RunId }[]> {
  return db<{ id: RunId }[]>`
    select id from runs where id = any(${[...ids]}) and status not in ('cancelling', 'cancelled')`
}

const FINISHED_DAYS = 30

/** Takes away what ended jobs have left undone, and jobs that ended long ago. Answers how many rows. */
export async function clean(db: Db, limit: number): Promise<number> {
  const rows = await db`
    delete from bulk_job_runs
    where (job_id, run_id) in (
      select r.job_id, r.run_id
      from bulk_jobs j
      join bulk_job_runs r on r.job_id = j.id
      where j.finished_at < now() - ${FINISHED_DAYS} * interval '1 day'
         or (j.finished_at is not null and r.error is null)
      limit ${limit}
    )
    returning 1`
  if (rows.length < limit)
    await db`delete from bulk_jobs where finished_at < now() - ${FINISHED_DAYS} * interval '1 day'`
  return rows.length
}
