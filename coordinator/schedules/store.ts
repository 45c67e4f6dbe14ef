import type { OrgId, ScheduleId, WorkflowId } from '@windlass/shared/ids.ts'
import { onlyFilters } from '../db/by-key.ts'
import type { Db, Sql, Tx } from '../db/client.ts'
import type { Fragment } from '../db/newest.ts'
import { unnest } from '../db/unnest.ts'
import type { Content, ScheduleRow, ScheduleState } from './row.ts'

const ms = (sql: Sql, column: Fragment) => sql`floor(extract(epoch from ${column}) * 1000)::float8`
const instant = (sql: Sql, at: number | null) => sql`to_timestamp(${at}::float8 / 1000)`

/**
 * The newest run of the schedule `s`. As a range of the index of such runs: see `newest`. That index has the collation
 * of its column, which no id has: compared as an id, each of these runs of all orgs is read instead.
 */
const lastRun = (sql: Sql) => sql`
  select json_build_object('id', r.id, 'status', r.status, 'at', ${ms(sql, sql`r.tick_at`)}::bigint)
  from runs r
  where (r.trigger_id, r.id) > (s.id collate "default", '') and (r.trigger_id, r.id) < (s.id collate "default", '~')
    and r.trigger_kind in ('schedule', 'webhook', 'connection')
  order by r.trigger_id desc, r.id desc
  limit 1`

/** `offset 0`: first the schedules, then the workflow of each by its key. */
const ofWorkflow = (sql: Sql) => sql`
  cross join lateral (select slug, deleted_at from workflows where id = s.workflow_id offset 0) w`

/** All that a `ScheduleRow` has, of the schedules `s`; its newest run only where somebody reads it. */
const readable = (sql: Sql, last: Fragment = lastRun(sql)) => sql`
  select s.id, s.org_id, (select o.slug from orgs o where o.id = s.org_id) as org, s.workflow_id,
         w.slug as workflow_slug, w.deleted_at is not null as is_workflow_deleted, s.source, s.identity, s.name,
         s.kind, s.cron, s.timezone, s.rate_ms::float8 as rate_ms, ${ms(sql, sql`s.anchor_at`)} as anchor_at,
         ${ms(sql, sql`s.at`)} as at, s.environment, s.environment_id, s.input, s.jitter_ms, s.catch_up,
         s.catch_up_window_ms, s.overlap, s.enabled, s.is_set_by_hand, s.paused_by,
         ${ms(sql, sql`s.created_at`)} as created_at, s.created_by, ${ms(sql, sql`s.updated_at`)} as updated_at,
         ${ms(sql, sql`s.settled_at`)} as settled_at, ${ms(sql, sql`s.next_at`)} as next_at,
         ${ms(sql, sql`s.due_at`)} as due_at, ${ms(sql, sql`s.rests_since`)} as rests_since, s.rests_because,
         s.stopped_because, ${ms(sql, sql`s.ended_at`)} as ended_at, s.ended_because, s.gap_id, s.revision,
         s.earlier, ${ms(sql, sql`s.held_since`)} as held_since,
         ${ms(sql, sql`now()`)} as now,
         case when g.id is not null
           then json_build_object('outcome', g.outcome, 'reason', g.reason, 'message', g.message, 'runId', g.run_id)
         end as gap,
         (${last}) as last
  from schedules s
  ${ofWorkflow(sql)}
  left join schedule_gaps g on g.id = s.gap_id`

export async function find(sql: Sql, orgId: OrgId, id: ScheduleId): Promise<ScheduleRow | undefined> {
  const [row] = await sql<ScheduleRow[]>`
    ${readable(sql)}
    where s.id = ${id} and s.deleted_at is null and ${onlyFilters(sql, sql`s.org_id = ${orgId}`)}`
  return row
}

/** The row, locked: nothing of it is settled meanwhile. */
export async function lock(tx: Tx, orgId: OrgId, id: ScheduleId): Promise<ScheduleRow | undefined> {
  await tx`select 1 from schedules where id = ${id} and org_id = ${orgId} for update`
  return find(tx, orgId, id)
}

export interface ListAsk {
  orgId: OrgId
  workflowId: WorkflowId | undefined
  before: string | undefined
  limit: number
}

export function list(db: Db, ask: ListAsk): Promise<ScheduleRow[]> {
  return db<ScheduleRow[]>`${readable(db)} ${page(db, ask)}`
}

/** Of the inputs of a page. */
export function inputSizes(db: Db, ask: ListAsk): Promise<{ bytes: number }[]> {
  return db<{ bytes: number }[]>`
    select octet_length(s.input::text) as bytes
    from schedules s
    ${ofWorkflow(db)}
    ${page(db, ask)}`
}

/** Without what is no longer in a descriptor. */
const page = (db: Db, { orgId, workflowId, before, limit }: ListAsk) => db`
  where s.org_id = ${orgId} and s.deleted_at is null and s.ended_because is distinct from 'not-in-descriptor'
    and w.deleted_at is null
  ${workflowId ? db`and s.workflow_id = ${workflowId}` : db``}
  ${before ? db`and s.id < ${before}` : db``}
  order by s.id desc
  limit ${limit}`

/** Those of a workflow, locked: of its descriptor, or all of them. */
export async function lockOf(tx: Tx, { orgId, workflowId }: OfWorkflow, source?: 'descriptor'): Promise<ScheduleRow[]> {
  const these = tx`
    s.workflow_id = ${workflowId} and s.org_id = ${orgId} and s.deleted_at is null
    ${source ? tx`and s.source = ${source}` : tx``}`
  await tx`select 1 from schedules s where ${these} order by s.id for update`
  return tx<ScheduleRow[]>`${readable(tx, tx`null`)} where ${these} order by s.id`
}

/** Of an org those that have not ended; or those among them that somebody has made. */
export async function countOfApi(sql: Sql, orgId: OrgId, by?: string): Promise<number> {
  const [row] = await sql<[{ count: number }]>`
    select count(*)::int as count
    from schedules
    where org_id = ${orgId} and deleted_at is null and ended_at is null and source = 'api'
    ${by === undefined ? sql`` : sql`and created_by = ${by}`}`
  return row.count
}

/** One that makes schedules at a time, so that their limit holds. */
export async function lockOrg(tx: Tx, orgId: OrgId): Promise<void> {
  await tx`select pg_advisory_xact_lock(hashtextextended(${`schedules ${orgId}`}, 0))`
}

/** Milliseconds since the epoch, by the clock of the database. */
export async function clock(sql: Sql): Promise<number> {
  const [row] = await sql<[{ now: number }]>`select ${ms(sql, sql`now()`)} as now`
  return row.now
}

export interface NewSchedule extends Content, ScheduleState {
  id: ScheduleId
  orgId: OrgId
  workflowId: WorkflowId
  source: 'api' | 'descriptor'
  identity: string | null
  pausedBy: string | null
  /** Null: whoever has made the version of the workflow that is current. */
  createdBy: string | null
}

export async function insert(tx: Tx, s: NewSchedule): Promise<void> {
  await tx`
    insert into schedules (id, org_id, workflow_id, source, identity, name, kind, cron, timezone, rate_ms, anchor_at,
                           at, environment, environment_id, input, jitter_ms, catch_up, catch_up_window_ms, overlap,
                           enabled, paused_by, created_by, settled_at, next_at, due_at, rests_since, rests_because,
                           stopped_because, ended_at, ended_because)
    values (${s.id}, ${s.orgId}, ${s.workflowId}, ${s.source}, ${s.identity}, ${s.name}, ${s.kind}, ${s.cron},
            ${s.timezone}, ${s.rateMs}::float8, ${instant(tx, s.anchorAt)}, ${instant(tx, s.at)}, ${s.environment},
            ${s.environmentId}, ${s.input}, ${s.jitterMs}, ${s.catchUp}, ${s.catchUpWindowMs}, ${s.overlap},
            ${s.enabled}, ${s.pausedBy},
            coalesce(${s.createdBy}, (
              select v.created_by
              from workflows w
              join workflow_versions v on v.workflow_id = w.id and v.version = w.version
              where w.id = ${s.workflowId}
            )),
            ${instant(tx, s.settledAt)}, ${instant(tx, s.nextAt)}, ${instant(tx, s.dueAt)},
            ${instant(tx, s.restsSince)}, ${s.restsBecause}, ${s.stoppedBecause}, ${instant(tx, s.endedAt)},
            ${s.endedBecause})`
}

export type Changed = Content & ScheduleState & Pick<ScheduleRow, 'id' | 'orgId' | 'isSetByHand' | 'pausedBy'>

export async function update(tx: Tx, s: Changed): Promise<void> {
  await tx`
    update schedules
    set
      name = ${s.name}, kind = ${s.kind}, cron = ${s.cron}, timezone = ${s.timezone}, rate_ms = ${s.rateMs}::float8,
      anchor_at = ${instant(tx, s.anchorAt)}, at = ${instant(tx, s.at)}, environment = ${s.environment},
      environment_id = ${s.environmentId}, input = ${s.input}, jitter_ms = ${s.jitterMs}, catch_up = ${s.catchUp},
      catch_up_window_ms = ${s.catchUpWindowMs}, overlap = ${s.overlap}, enabled = ${s.enabled},
      is_set_by_hand = ${s.isSetByHand}, paused_by = ${s.pausedBy}, updated_at = now(), revision = revision + 1,
      settled_at = ${instant(tx, s.settledAt)}, next_at = ${instant(tx, s.nextAt)}, due_at = ${instant(tx, s.dueAt)},
      rests_since = ${instant(tx, s.restsSince)}, rests_because = ${s.restsBecause},
      stopped_because = ${s.stoppedBecause}, ended_at = ${instant(tx, s.endedAt)}, ended_because = ${s.endedBecause},
      gap_id = ${s.gapId}, earlier = ${JSON.stringify(s.earlier)}::text::jsonb,
      held_since = case when ${s.dueAt}::float8 is not null then held_since end
    where id = ${s.id} and org_id = ${s.orgId}`
}

/** The same for many whose content stays as it is. */
export async function updateStates(tx: Tx, rows: readonly (ScheduleState & Pick<ScheduleRow, 'id'>)[]): Promise<void> {
  await tx`
    update schedules s
    set
      updated_at = now(), revision = s.revision + 1, settled_at = to_timestamp(m.settled_at / 1000),
      next_at = to_timestamp(m.next_at / 1000), due_at = to_timestamp(m.due_at / 1000),
      rests_since = to_timestamp(m.rests_since / 1000), rests_because = m.rests_because,
      stopped_because = m.stopped_because, ended_at = to_timestamp(m.ended_at / 1000),
      ended_because = m.ended_because, gap_id = m.gap_id, earlier = m.earlier::jsonb,
      held_since = case when m.due_at is not null then s.held_since end
    from ${unnest(tx, 'm', rows, {
      id: 'text',
      settledAt: 'float8',
      nextAt: 'float8',
      dueAt: 'float8',
      restsSince: 'float8',
      restsBecause: 'text',
      stoppedBecause: 'text',
      endedAt: 'float8',
      endedBecause: 'text',
      gapId: ['bigint', (row) => row.gapId],
      earlier: ['text', (row) => JSON.stringify(row.earlier)],
    })}
    where s.id = m.id`
}

export async function remove(tx: Tx, orgId: OrgId, id: ScheduleId): Promise<void> {
  await tx`
    update schedules
    set deleted_at = now(), next_at = null, due_at = null, revision = revision + 1
    where id = ${id} and org_id = ${orgId}`
}

interface OfWorkflow {
  orgId: OrgId
  workflowId: WorkflowId
}

export async function removeOf(tx: Tx, { orgId, workflowId }: OfWorkflow): Promise<void> {
  const these = tx`select id from schedules where workflow_id = ${workflowId} and org_id = ${orgId}`
  await tx`delete from schedule_gaps where schedule_id in (${these})`
  await tx`delete from schedules where workflow_id = ${workflowId} and org_id = ${orgId}`
}

/** Without their newest runs, for whoever settles them. */
export function findAll(sql: Sql, ids: readonly ScheduleId[]): Promise<ScheduleRow[]> {
  return sql<ScheduleRow[]>`${readable(sql, sql`null`)} where s.id = any(${[...ids]}) order by s.id`
}

/** Those of the ticks, in milliseconds since the epoch, for which a run was started. */
export async function ticksStarted(db: Db, id: ScheduleId, ticks: readonly number[]): Promise<number[]> {
  const rows = await db<{ at: number }[]>`
    select ${ms(db, db`r.tick_at`)} as at
    from runs r
    where r.trigger_id = ${id} and r.tick <> 'manual' and r.retry_of is null
      and r.tick_at = any(
        select to_timestamp(at / 1000) from ${unnest(db, 't', ticks, { at: ['float8', (at) => at] })}
      )`
  return rows.map(({ at }) => at)
}

/** The zone data by which the next ticks were found; null: there was no start yet. */
export async function zoneData(sql: Sql): Promise<string | null> {
  const [row] = await sql<[{ tz: string }?]>`select tz from schedule_zone_data`
  return row?.tz ?? null
}

export async function noteZoneData(sql: Sql, tz: string): Promise<void> {
  await sql`insert into schedule_zone_data (tz) values (${tz}) on conflict (is_only) do update set tz = excluded.tz`
}

/** Of all orgs those that go by a zone and have not ended, locked. */
export async function lockCrons(tx: Tx, after: string, limit: number): Promise<ScheduleRow[]> {
  const ids = await tx<{ id: ScheduleId }[]>`
    select id
    from schedules
    where id > ${after} and kind = 'cron' and deleted_at is null and ended_at is null
    order by id
    limit ${limit}
    for update`
  return findAll(
    tx,
    ids.map((row) => row.id),
  )
}
