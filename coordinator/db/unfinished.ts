import type { Sql } from './client.ts'
import type { Fragment } from './newest.ts'

/** Ids of all runs that have not finished, and of some that have meanwhile: migration 0004 says why they are found so. */
export function unfinishedRuns(sql: Sql): Fragment {
  return sql`
    select run_id as id from runs_remaining
    union all
    select id from runs where id > (select run_id from sweep_mark) and finished_at is null`
}
