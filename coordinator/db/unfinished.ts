import type { OrgId } from '@windlass/shared/ids.ts'
import type { Sql } from './client.ts'
import type { Fragment } from './newest.ts'

/** Ids of all runs that have not finished, and of some that have meanwhile: see `sweep_mark` in 0003-runs.sql. */
export function unfinishedRuns(sql: Sql): Fragment {
  return sql`
    select run_id as id from runs_remaining
    union all
    select id from runs where id > (select run_id from sweep_mark) and finished_at is null`
}

/**
 * Those of one org, the newest first: a page reads about as many as it shows. The mark is told together with the org:
 * alone it would be no end of the scan, which would go through all runs of the org.
 */
export function newestUnfinished(sql: Sql, orgId: OrgId): Fragment {
  return sql`
    (select org_id, run_id as id from runs_remaining order by org_id desc, run_id desc)
    union all
    (
      select org_id, id
      from runs
      where (org_id, id) > (${orgId}, (select run_id from sweep_mark)) and finished_at is null
      order by org_id desc, id desc
    )`
}
