import { Fault } from '@windlass/shared/errors.ts'
import type { OrgId, RunId } from '@windlass/shared/ids.ts'
import type { RunStatus } from '@windlass/shared/model/run.ts'
import type { Db, Sql } from '../db/client.ts'
import type { Fragment } from '../db/newest.ts'
import { onlyFilters } from '../db/by-key.ts'
import { unnest } from '../db/unnest.ts'
import type { RunRow } from '../engine/rules/run.ts'
import { lastLoss } from './store-losses.ts'

/** As many of a run's open waits as readers of the run are shown. */
const SHOWN = 100

/** The open waits of the run `r`, as one JSON array; for a select list. */
const openWaits = (sql: Sql) => sql`
  select json_agg(json_build_array(w.kind, (extract(epoch from w.due_at) * 1000)::bigint, i.id, w.child_run_id) order by w.n)
  from (
    select n, kind, due_at, child_run_id
    from journal
    where run_id = r.id and state = 'open' and attempt = r.attempt and kind <> 'step'
    order by n
    limit ${SHOWN}
  ) w
  left join inputs i on i.run_id = r.id and i.n = w.n`

/** All that a `RunRow` has, of the runs `r`. The slug is looked up, not joined: orgs must not lead to runs. */
export const readable = (sql: Sql, runs: Fragment = sql`runs r`) => sql`
  select r.id, (select o.slug from orgs o where o.id = r.org_id) as org, r.org_id,
         r.workflow_id, w.slug as workflow_slug, v.version, r.version_id, r.pool_id,
         p.name as pool_name, r.status, r.attempt, r.epoch, r.cursor, r.runner_id, n.name as runner_name, r.trigger_kind,
         r.trigger_id, r.trigger_actor, r.tick as tick_how, r.tick_at, r.tick_late::float8 as tick_late,
         r.environment, r.tags, r.priority, r.parent_run_id, r.root_run_id, r.retry_of,
         r.error, r.created_at, r.queued_at, r.claimed_at, r.started_at, r.finished_at, r.compute_ms, r.tokens_input,
         r.deleted_at, r.tokens_output, r.tokens_cached, r.tokens_reasoning, r.cost_micros, r.blocked, r.suspended_at,
         r.isolation, (${lastLoss(sql)}) as lost, v.budget,
         case when r.status in ('sleeping', 'awaiting_input', 'waiting_for_child') then (${openWaits(sql)}) end as waits
  from ${runs}
  join workflows w on w.id = r.workflow_id
  join workflow_versions v on v.id = r.version_id
  join runner_pools p on p.id = r.pool_id
  left join runners n on n.id = r.runner_id`

export async function find(sql: Sql, orgId: OrgId, id: RunId): Promise<RunRow | undefined> {
  const [row] = await sql<
    RunRow[]
  >`${readable(sql)} where r.id = ${id} and ${onlyFilters(sql, sql`r.org_id = ${orgId}`)}`
  return row
}

/** Where a run is looked for: one of another org is not there. */
export interface RunAddress {
  orgId: OrgId
  id: RunId
}

export function findAll(db: Db, asked: readonly RunAddress[]): Promise<RunRow[]> {
  return db<RunRow[]>`
    ${readable(db)}
    join ${unnest(db, 'asked', asked, { id: 'text', orgId: 'text' })}
      on asked.id = r.id and ${onlyFilters(db, db`r.org_id = asked.org_id`)}`
}

/** JSON text of the input, which no other read carries along. */
export async function inputOf(db: Db, orgId: OrgId, id: RunId): Promise<string | undefined> {
  const [row] = await db<{ input: string; deletedAt: Date | null }[]>`
    select input, deleted_at
    from runs
    where id = ${id} and ${onlyFilters(db, db`org_id = ${orgId}`)}`
  refuseDeleted(id, row)
  return row?.input
}

/** Throws RUN_DELETED: what is asked for is gone, though the run is there. */
function refuseDeleted(run: RunId, row: { deletedAt: Date | null } | undefined): void {
  if (!row?.deletedAt) return
  const message = `The run was deleted at ${row.deletedAt.toISOString()}; its state and times are all that is left.`
  throw new Fault('RUN_DELETED', { run, deletedAt: row.deletedAt.getTime() }, message)
}

/** JSON text of what it returned, if there is any; of a failed run that is no output. */
export async function outputOf(db: Db, orgId: OrgId, id: RunId) {
  const [row] = await db<{ status: RunStatus; output: string | null; deletedAt: Date | null }[]>`
    select status, output, deleted_at
    from runs
    where id = ${id} and ${onlyFilters(db, db`org_id = ${orgId}`)}`
  refuseDeleted(id, row)
  return row
}
