import type { OrgId, PoolId } from '@windlass/shared/ids.ts'
import type { Sql } from './client.ts'
import { BEHIND_ALL, type Fragment } from './newest.ts'

/** Ids of all runs that have not finished, and of some that have meanwhile: see `sweep_mark` in 0003-runs.sql. */
export function unfinishedRuns(sql: Sql): Fragment {
  return sql`
    select run_id as id from runs_remaining
    union all
    select id from runs where id > (select run_id from sweep_mark) and finished_at is null`
}

/** Those of one org, the newest first: a page reads about as many as it shows. */
export function newestUnfinished(sql: Sql, orgId: OrgId): Fragment {
  return sql`
    (select org_id, run_id as id from runs_remaining order by org_id desc, run_id desc)
    union all
    (${behindMark(sql, orgId)})`
}

/** Those of one environment, and what its org has behind the mark. */
export function unfinishedOfEnvironment(sql: Sql, orgId: OrgId, environment: string): Fragment {
  const of = sql`${environment}, ${orgId}`
  return sql`
    select run_id as id
    from runs_remaining
    where (environment, org_id, run_id) > (${of}, '') and (environment, org_id, run_id) < (${of}, ${BEHIND_ALL})
      and environment is not null
    union all
    (${incomplete(sql, orgId)})
    union all
    select id from (${behindMark(sql, orgId)}) young where org_id = ${orgId}`
}

/** Those of one pool, and what its org has behind the mark. */
export function unfinishedOfPool(sql: Sql, orgId: OrgId, poolId: PoolId): Fragment {
  return sql`
    select run_id as id
    from runs_remaining
    where (pool_id, run_id) > (${poolId}, '') and (pool_id, run_id) < (${poolId}, ${BEHIND_ALL}) and pool_id is not null
    union all
    (${incomplete(sql, orgId)})
    union all
    select id from (${behindMark(sql, orgId)}) young where org_id = ${orgId}`
}

/** Of an org, what stands in `runs_remaining` without what it uses, until the next sweep: see 0047. */
function incomplete(sql: Sql, orgId: OrgId): Fragment {
  return sql`
    select run_id as id
    from runs_remaining
    where (org_id, run_id) > (${orgId}, '') and (org_id, run_id) < (${orgId}, ${BEHIND_ALL}) and pool_id is null`
}

/**
 * The mark is told together with the org: alone it would be no end of the scan, which would go through all runs of the
 * org.
 */
function behindMark(sql: Sql, orgId: OrgId): Fragment {
  return sql`
    select org_id, id
    from runs
    where (org_id, id) > (${orgId}, (select run_id from sweep_mark)) and finished_at is null
    order by org_id desc, id desc`
}
