import type { OrgId, ScheduleId, WorkflowId } from '@windlass/shared/ids.ts'
import { onlyFilters } from '../db/by-key.ts'
import type { Db, Sql, Tx } from '../db/client.ts'
import { shareOf } from '../db/share.ts'
import { unnest } from '../db/unnest.ts'
import type { EarlierRule, GapRow, NewGap } from './row.ts'

export interface Upcoming {
  id: ScheduleId
  /** Negative or 0 when it is due. */
  inMs: number
  /** The so many-th of its org that is due; null: it is not. */
  turn: number | null
}

/** Schedules that are under way elsewhere, or wait there. */
export interface PassedOver {
  /** Orgs of which none is found. */
  orgs: readonly OrgId[]
  /** And workflows. */
  workflows: readonly WorkflowId[]
}

const NOTHING: PassedOver = { orgs: [], workflows: [] }

/**
 * What is due by now, of each org in turn one, its most overdue first; and after those what is due next. What is passed
 * over takes no room in it. Not locked: whoever settles it names its revision.
 */
export function upcoming(db: Db, limit: number, { orgs, workflows }: PassedOver = NOTHING): Promise<Upcoming[]> {
  return db<Upcoming[]>`
    with recursive orgs as (
      (select org_id from schedules where due_at is not null order by org_id limit 1)
      union all
      select (
        select s.org_id from schedules s where s.due_at is not null and s.org_id > o.org_id order by s.org_id limit 1
      )
      from orgs o
      where o.org_id is not null
    ),
    share as materialized (${shareOf(
      db,
      db`
        select count(*) from orgs o where exists (
          select from schedules where org_id = o.org_id and due_at <= now() offset 0
        )`,
      limit,
    )})
    select next.id, floor(extract(epoch from next.due_at - now()) * 1000)::float8 as in_ms, next.turn::int
    from orgs o
    cross join lateral (
      select due.*, row_number() over (order by due.due_at, due.id) as turn
      from (
        select id, due_at
        from schedules
        where org_id = o.org_id and due_at <= now()
          and ${onlyFilters(db, db`org_id <> all(${[...orgs]}) and workflow_id <> all(${[...workflows]})`)}
        order by due_at
        limit (select each from share)
      ) due
      union all
      (select id, due_at, null from schedules where org_id = o.org_id and due_at > now() order by due_at limit 1)
    ) next
    where o.org_id is not null
    order by next.turn, next.due_at, next.id
    limit ${limit}`
}

/** A schedule as it was when its ticks were decided. */
export interface Decided {
  id: ScheduleId
  revision: number
}

/** Of these, those that nobody has changed or is changing; their rows are locked. */
export async function lockDecided(tx: Tx, decided: readonly Decided[]): Promise<Set<ScheduleId>> {
  const rows = await tx<{ id: ScheduleId }[]>`
    select s.id
    from schedules s
    join ${unnest(tx, 'd', decided, { id: 'text', revision: 'int' })} on d.id = s.id and d.revision = s.revision
    where ${onlyFilters(tx, tx`s.due_at is not null`)}
    order by s.id
    for update of s skip locked`
  return new Set(rows.map((row) => row.id))
}

/** How far a schedule has come after its ticks were settled. */
export interface SettledRow {
  id: ScheduleId
  settledAt: number
  nextAt: number | null
  dueAt: number | null
  /** It was due once, and that is over. */
  isOver: boolean
  stoppedBecause: string | null
  gapId: string | null
  heldSince: number | null
  earlier: readonly EarlierRule[]
}

export async function settle(tx: Tx, rows: readonly SettledRow[]): Promise<void> {
  await tx`
    update schedules s
    set
      settled_at = to_timestamp(m.settled_at / 1000),
      next_at = to_timestamp(m.next_at / 1000),
      due_at = to_timestamp(m.due_at / 1000),
      ended_at = coalesce(s.ended_at, case when m.is_over = 1 then now() end),
      ended_because = coalesce(s.ended_because, case when m.is_over = 1 then 'over' end),
      stopped_because = m.stopped_because,
      gap_id = m.gap_id,
      held_since = to_timestamp(m.held_since / 1000),
      earlier = m.earlier::jsonb,
      revision = s.revision + 1
    from ${unnest(tx, 'm', rows, {
      id: 'text',
      settledAt: 'float8',
      nextAt: 'float8',
      dueAt: 'float8',
      isOver: ['int', (row) => Number(row.isOver)],
      stoppedBecause: 'text',
      gapId: ['bigint', (row) => row.gapId],
      heldSince: 'float8',
      earlier: ['text', (row) => JSON.stringify(row.earlier)],
    })}
    where s.id = m.id`
}

/** Their next look comes so much later; the tick stays. */
export async function putOff(db: Db, decided: readonly Decided[], inMs: number): Promise<void> {
  await db`
    update schedules s
    set due_at = now() + ${inMs} * interval '1 millisecond'
    from ${unnest(db, 'd', decided, { id: 'text', revision: 'int' })}
    where d.id = s.id and d.revision = s.revision and ${onlyFilters(db, db`s.due_at is not null`)}`
}

/**
 * The same while a tick waits for an agent: for a second at first, and for five after a minute, as thousands may wait.
 * Time in which nobody looked does not count as held. Answers those of which nobody else has the row.
 */
export async function hold(db: Db, decided: readonly Decided[]): Promise<Set<ScheduleId>> {
  const rows = await db<{ id: ScheduleId }[]>`
    with free as materialized (
      select s.id
      from ${unnest(db, 'd', decided, { id: 'text', revision: 'int' })}
      join schedules s on s.id = d.id and s.revision = d.revision
      where ${onlyFilters(db, db`s.due_at is not null`)}
      order by s.id
      for update of s skip locked
    )
    update schedules s
    set
      due_at = now() + least(greatest((now() - coalesce(s.held_since, now())) / 12, '1 second'), '5 seconds'),
      held_since = coalesce(s.held_since + greatest(now() - s.due_at, '0'), now())
    from free f
    where s.id = f.id
    returning s.id`
  return new Set(rows.map(({ id }) => id))
}

/** Ids in the order of the gaps. */
export async function insertGaps(tx: Tx, gaps: readonly NewGap[]): Promise<string[]> {
  if (gaps.length === 0) return []
  const rows = await tx<{ id: string }[]>`
    insert into schedule_gaps (org_id, schedule_id, outcome, reason, message, run_id, from_at, to_at, count, caught_up,
                               fired_at)
    select org_id, schedule_id, outcome, reason, message, run_id, to_timestamp(first / 1000), to_timestamp(last / 1000),
           count, caught_up, to_timestamp(fired_at / 1000)
    from ${unnest(tx, 'g', gaps, {
      orgId: 'text',
      scheduleId: 'text',
      outcome: 'text',
      reason: 'text',
      message: 'text',
      runId: 'text',
      first: ['float8', (gap) => gap.from],
      last: ['float8', (gap) => gap.to],
      count: 'int',
      caughtUp: 'int',
      firedAt: 'float8',
      n: 'ordinality',
    })}
    order by n
    returning id`
  return rows.map((row) => row.id)
}

export interface LongerGap {
  id: string
  to: number
  count: number
}

/** More ticks of the same kind, behind those of the gap. */
export async function lengthenGaps(tx: Tx, gaps: readonly LongerGap[]): Promise<void> {
  if (gaps.length === 0) return
  await tx`
    update schedule_gaps g
    set to_at = to_timestamp(m.until / 1000), count = g.count + m.count
    from ${unnest(tx, 'm', gaps, { id: ['bigint', (gap) => gap.id], until: ['float8', (gap) => gap.to], count: 'int' })}
    where g.id = m.id`
}

const DELETED_DAYS = 30

/** Takes away schedules that were deleted long ago, their gaps first. Answers how many rows. */
export async function cleanDeleted(db: Db, limit: number): Promise<number> {
  const old = db`s.deleted_at < now() - ${DELETED_DAYS} * interval '1 day'`
  const gaps = await db`
    delete from schedule_gaps
    where id in (
      select g.id from schedules s join schedule_gaps g on g.schedule_id = s.id where ${old} limit ${limit}
    )
    returning 1`
  if (gaps.length === limit) return limit
  const schedules = await db`
    delete from schedules
    where id in (
      select s.id
      from schedules s
      where ${old} and not exists (select 1 from schedule_gaps g where g.schedule_id = s.id)
      limit ${limit}
    )
    returning 1`
  return Math.max(gaps.length, schedules.length)
}

export interface GapsAsk {
  orgId: OrgId
  scheduleId: ScheduleId
  before: string | undefined
  limit: number
}

export function listGaps(sql: Sql, { orgId, scheduleId, before, limit }: GapsAsk): Promise<GapRow[]> {
  return sql<GapRow[]>`
    select id, schedule_id, org_id, outcome, reason, message, run_id,
           (extract(epoch from from_at) * 1000)::float8 as "from", (extract(epoch from to_at) * 1000)::float8 as "to",
           count, caught_up, (extract(epoch from fired_at) * 1000)::float8 as fired_at
    from schedule_gaps
    where schedule_id = ${scheduleId} and ${onlyFilters(sql, sql`org_id = ${orgId}`)}
    ${before === undefined ? sql`` : sql`and id < ${before}::bigint`}
    order by schedule_id desc, id desc
    limit ${limit}`
}
