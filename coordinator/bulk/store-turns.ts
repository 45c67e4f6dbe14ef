import type { JobId, OrgId } from '@windlass/shared/ids.ts'
import type { Sql, Tx } from '../db/client.ts'

/** Key of the job of graphile-worker that gives the org its next turn. */
export const turnKey = (orgId: OrgId) => `bulk-turn:${orgId}`
/** The same for the turn that a job has later, apart from the others of its org. */
export const putOffKey = (id: JobId) => `bulk-again:${id}`

/** The unfinished job of the org whose last turn is the longest ago, which has one now. */
export async function takeTurn(sql: Sql, orgId: OrgId): Promise<JobId | undefined> {
  const [row] = await sql<{ id: JobId }[]>`
    update bulk_jobs
    set turn_at = now()
    where id = (
      select id
      from bulk_jobs
      where org_id = ${orgId} and finished_at is null and turn_at <= now()
      order by turn_at, id
      limit 1
    )
    returning id`
  return row?.id
}

/** Whether a job of the org could have a turn now. */
export async function hasTurn(sql: Sql, orgId: OrgId): Promise<boolean> {
  const rows = await sql`
    select from bulk_jobs where org_id = ${orgId} and finished_at is null and turn_at <= now() limit 1`
  return rows.length > 0
}

/** It has no turn before. */
export async function putOff(tx: Tx, id: JobId, ms: number): Promise<void> {
  await tx`
    update bulk_jobs
    set turn_at = now() + ${ms} * interval '1 millisecond'
    where id = ${id} and finished_at is null`
}

/** It goes before all others of its org. */
export async function putFirst(tx: Tx, id: JobId): Promise<void> {
  await tx`update bulk_jobs set turn_at = '-infinity' where id = ${id} and finished_at is null`
}

/** Orgs with an unfinished job for which no turn is to come, nor under way. */
export async function orgsWithoutTurn(sql: Sql): Promise<OrgId[]> {
  const [ofOrg, ofJob] = [turnKey('' as OrgId), putOffKey('' as JobId)]
  // By the collation of the key, or all jobs are read.
  const rows = await sql<{ orgId: OrgId }[]>`
    select distinct b.org_id
    from bulk_jobs b
    where b.finished_at is null
      and not exists (
        select
        from graphile_worker.jobs j
        where j.key in ((${ofOrg} || b.org_id) collate "default", (${ofJob} || b.id) collate "default")
          and (j.attempts < j.max_attempts or j.locked_at is not null)
      )`
  return rows.map(({ orgId }) => orgId)
}
