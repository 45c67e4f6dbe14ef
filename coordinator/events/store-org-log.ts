import type { OrgId, RunId } from '@windlass/shared/ids.ts'
import type { Db } from '../db/client.ts'

/** Where the log of an org stands. */
export interface OrgLogPosition {
  series: string
  isWhole: boolean
  /** The last position that was given. */
  position: number
  /** Of the events up to this position some are gone. */
  goneTo: number
}

/** A day, in which a reader may come back. */
const STORED_FOR = '24 hours'
/** Of a day only so much is used up before the end is put off. */
const PUT_OFF_AFTER = '1 hour'
/** What is nearer to its end is taken for over: the row may have been waited for, for 10 s at most. */
const MARGIN = '1 minute'
/** Events of an org beyond these go before their day is over. */
const MOST_EVENTS = 1_000_000

/**
 * Has events of this org written from the next statement of anybody on. A log whose time was over begins anew, as
 * another series.
 */
export async function keep(db: Db, orgId: OrgId, series: string): Promise<OrgLogPosition> {
  const [row] = await db<[OrgLogPosition]>`
    insert into org_logs as l (org_id, series, kept_until)
    values (${orgId}, ${series}, now() + ${STORED_FOR}::interval)
    on conflict (org_id) do update
    set kept_until = now() + ${STORED_FOR}::interval,
        is_whole   = l.is_whole and l.kept_until > now() + ${MARGIN}::interval,
        series     = case when l.kept_until > now() + ${MARGIN}::interval then l.series else excluded.series end
    returning series, is_whole, position::float8 as position, gone_to::float8 as gone_to`
  return row
}

/** While somebody reads: the end is put off, unless it has come. */
export async function putOff(db: Db, orgId: OrgId): Promise<void> {
  await db`
    update org_logs
    set kept_until = now() + ${STORED_FOR}::interval
    where org_id = ${orgId} and kept_until > now() + ${MARGIN}::interval`
}

/** Those who may write events at this moment: their statements may have begun before the last commit. */
export async function writers(db: Db): Promise<string[]> {
  const rows = await db<{ writer: string }[]>`
    select distinct virtualtransaction as writer
    from pg_locks
    where relation = 'org_events'::regclass and mode = 'RowExclusiveLock'
      and database = (select oid from pg_database where datname = current_database())`
  return rows.map(({ writer }) => writer)
}

export async function noteWhole(db: Db, orgId: OrgId): Promise<void> {
  await db`update org_logs set is_whole = true where org_id = ${orgId} and not is_whole`
}

/**
 * Gives positions to what has been committed without one, the eldest first. Answers how many, and the last of all. Who
 * does this takes turns by the row of the log.
 */
export function givePositions(db: Db, orgId: OrgId, limit: number): Promise<{ given: number; last: number }> {
  return db.begin(async (tx) => {
    const [log] = await tx<[{ position: string }?]>`
      select position::text as position from org_logs where org_id = ${orgId} for update`
    if (!log) return { given: 0, last: 0 }
    // A statement of its own: it sees what those have given who were waited for. Nobody else changes these rows, so
    // that they stay in their places; by id the planner reads all that wait for a position, for each one.
    const [row] = await tx<[{ given: number; last: number }?]>`
      with fresh as materialized (
        select ctid as place, row_number() over (order by id) as n
        from org_events
        where org_id = ${orgId} and position is null
        order by id
        limit ${limit}
      ),
      placed as (
        update org_events e
        set position = ${log.position}::bigint + f.n
        from fresh f
        where e.ctid = f.place
      )
      update org_logs
      set position = position + (select count(*) from fresh)
      where org_id = ${orgId} and exists (select from fresh)
      returning position::float8 as last, (select count(*) from fresh)::int as given`
    return row ?? { given: 0, last: Number(log.position) }
  })
}

/** What its readers see of it. */
export interface OrgLogState {
  series: string
  position: number
  goneTo: number
  /** Something has no position yet. */
  isBehind: boolean
  /** The end should be put off. */
  endsSoon: boolean
  /** Nothing more is written. */
  isOver: boolean
}

/** Some looks into indexes. Undefined: the log was never begun. */
export async function state(db: Db, orgId: OrgId): Promise<OrgLogState | undefined> {
  const [row] = await db<[OrgLogState?]>`
    select series, position::float8 as position, gone_to::float8 as gone_to,
           exists (select from org_events e where e.org_id = ${orgId} and e.position is null) as is_behind,
           kept_until < now() + ${STORED_FOR}::interval - ${PUT_OFF_AFTER}::interval as ends_soon,
           kept_until <= now() as is_over
    from org_logs
    where org_id = ${orgId}`
  return row
}

export async function goneTo(db: Db, orgId: OrgId): Promise<number> {
  const [row] = await db<[{ goneTo: number }?]>`
    select gone_to::float8 as gone_to from org_logs where org_id = ${orgId}`
  return row?.goneTo ?? 0
}

/** An event of the log, with what it is about. */
export interface OrgEventRow {
  position: number
  at: number
  type: string
  run: RunId
  /** Null when the run or its workflow is gone. */
  workflow: string | null
  cursor: number
  /** JSON text of an object. */
  data: string
}

export async function after(
  db: Db,
  orgId: OrgId,
  read: { since: number; limit: number; bytes: number },
): Promise<OrgEventRow[]> {
  return db<OrgEventRow[]>`
    with page as (
      select position, at, type, run_id, cursor, data,
             sum(octet_length(data)) over (order by position rows unbounded preceding) as bytes
      from org_events
      where org_id = ${orgId} and position > ${read.since}::bigint
      order by position
      limit ${read.limit}
    )
    select p.position::float8 as position, p.at::float8 as at, p.type, p.run_id as run, w.slug as workflow,
           p.cursor, p.data
    from page p
    left join runs r on r.id = p.run_id
    left join workflows w on w.id = r.workflow_id
    where p.bytes - octet_length(p.data) < ${read.bytes}
    order by p.position`
}

/** Takes away what is older than a day, or more than is kept. Answers whether there may be more. */
export async function clean(db: Db, orgId: OrgId, limit: number): Promise<boolean> {
  const [row] = await db<[{ gone: number }?]>`
    with first as materialized (
      select e.position,
             e.written_at < now() - ${STORED_FOR}::interval or e.position <= l.position - ${MOST_EVENTS} as is_old
      from org_events e
      join org_logs l on l.org_id = e.org_id
      where e.org_id = ${orgId} and e.position is not null
      order by e.position
      limit ${limit}
    ),
    last as materialized (
      select max(position) as position from first where is_old
    ),
    gone as (
      delete from org_events
      where org_id = ${orgId} and position <= (select position from last)
      returning position
    )
    update org_logs
    set gone_to = greatest(gone_to, (select position from last))
    where org_id = ${orgId} and exists (select from last where position is not null)
    returning (select count(*) from gone)::int as gone`
  return row !== undefined && row.gone >= limit
}

/** Orgs that have a log. */
export async function orgsWithLogs(db: Db): Promise<OrgId[]> {
  const rows = await db<{ orgId: OrgId }[]>`select org_id from org_logs`
  return rows.map(({ orgId }) => orgId)
}
