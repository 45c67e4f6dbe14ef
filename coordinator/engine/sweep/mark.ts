import { firstIdAt } from '@windlass/shared/ids.ts'
import type { Db } from '../../db/client.ts'

// Unfinished runs are few, and finished ones stay for ever. See `sweep_mark` in 0003-runs.sql.

/**
 * A run is committed that much later than its id was made at most: callers wait 20 s for a lost database, a statement takes 30 s,
 * and the clocks of two coordinators may differ.
 */
const MARGIN_MS = 300_000
/** Runs in one statement: some hundred milliseconds of it, in the first sweep of a large database. */
const PAGE = 20_000

/** Lets the mark follow the time, forgets what has finished behind it, and completes what older coordinators wrote. */
export async function followMark(db: Db): Promise<void> {
  const [row] = await db<[{ ms: number }]>`select (extract(epoch from now()) * 1000)::float8 as ms`
  await moveMark(db, firstIdAt('run', row.ms - MARGIN_MS))
  await db`
    delete from runs_remaining m
    where not exists (select from runs r where r.id = m.run_id and r.finished_at is null)`
  await complete(db)
}

/** What a run uses: those that an older coordinator has noted lack it. */
async function complete(db: Db): Promise<void> {
  for (;;) {
    const { count } = await db`
      with page as materialized (
        select run_id from runs_remaining where pool_id is null order by org_id, run_id limit ${PAGE}
      )
      update runs_remaining m
      set trigger_id = coalesce(r.trigger_id, ''), environment = r.environment, pool_id = r.pool_id
      from page p
      join runs r on r.id = p.run_id
      where m.run_id = p.run_id`
    if (count < PAGE) return
  }
}

/** Moves the mark to the last run up to this id. */
export async function moveMark(db: Db, upTo: string): Promise<void> {
  for (;;) {
    const [row] = await db<{ size: number }[]>`
      with page as materialized (
        select id, org_id, trigger_id, environment, pool_id, finished_at
        from runs
        where id > (select run_id from sweep_mark) and id <= ${upTo}
        order by id
        limit ${PAGE}
      ),
      remaining as (
        insert into runs_remaining (run_id, org_id, trigger_id, environment, pool_id)
        select id, org_id, coalesce(trigger_id, ''), environment, pool_id from page where finished_at is null
        on conflict (run_id) do nothing
      )
      update sweep_mark
      set run_id = p.last
      from (select max(id) as last, count(*)::int as size from page) p
      where p.last is not null
      returning p.size`
    if (!row || row.size < PAGE) return
  }
}
