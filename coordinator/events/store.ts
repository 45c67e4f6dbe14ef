import type { OrgId, RunId } from '@windlass/shared/ids.ts'
import type { Channel } from '@windlass/shared/model/event.ts'
import type { RunStatus } from '@windlass/shared/model/run.ts'
import type { Db, Sql, Tx } from '../db/client.ts'
import { onlyFilters } from '../db/by-key.ts'
import type { Fragment } from '../db/newest.ts'
import { unnest } from '../db/unnest.ts'

export interface NewEvent {
  runId: RunId
  orgId: OrgId
  cursor: number
  /** Milliseconds since the epoch. */
  at: number
  channel: Channel
  type: string
  /** JSON text of an object. */
  dataText: string
}

export type StoredEvent = Omit<NewEvent, 'runId' | 'orgId'>

/** Writes events under numbers that were taken under the locks of their runs. */
export function insert(tx: Tx, events: NewEvent[]): PromiseLike<unknown> {
  if (events.length === 0) return Promise.resolve()
  return tx`
    with news as (
      select *
      from ${unnest(tx, 't', events, {
        runId: 'text',
        orgId: 'text',
        cursor: 'int',
        at: 'bigint',
        channel: 'text',
        type: 'text',
        data: ['text', ({ dataText }) => dataText],
      })}
    ),
    told as (${tellOrgs(tx, tx`(select * from news where channel = 'lifecycle')`)})
    insert into run_events (run_id, cursor, at, channel, type, data)
    select run_id, cursor, at, channel, type, data from news`
}

/**
 * Copies lifecycle events into the logs of their orgs, where somebody follows these: with the move that they tell, or
 * not at all. `rows` have run_id, org_id, cursor, at, type, data, and are read twice. The row of a log is looked up
 * once: it may have thousands of dead versions, through which each look passes.
 */
export function tellOrgs(sql: Sql, rows: Fragment): Fragment {
  return sql`
    with followed as materialized (
      select org_id
      from org_logs
      where org_id = any (array(select distinct org_id from ${rows} e)) and kept_until > now()
    )
    insert into org_events (org_id, run_id, cursor, at, type, data)
    select e.org_id, e.run_id, e.cursor, e.at, e.type, e.data
    from ${rows} e
    join followed using (org_id)
    order by e.run_id, e.cursor`
}

/** Where the log of a run stands. */
export interface LogPosition {
  status: RunStatus
  /** Of its last event. */
  cursor: number
  deletedAt: Date | null
}

const positionOf = (sql: Sql, orgId: string, runId: RunId) => sql`
  select status, cursor, deleted_at
  from runs
  where id = ${runId} and ${onlyFilters(sql, sql`org_id = ${orgId}`)}`

/** With the time of the event at a cursor; null when there is none. Undefined: no such run in this org. */
export async function position(
  db: Db,
  orgId: string,
  runId: RunId,
  at: number,
): Promise<(LogPosition & { eventAt: number | null }) | undefined> {
  const [row] = await db<(LogPosition & { eventAt: number | null })[]>`
    with log as (${positionOf(db, orgId, runId)})
    select log.*, (select at::float8 from run_events where run_id = ${runId} and cursor = ${at}::bigint) as event_at
    from log`
  return row
}

/** When the last events of these runs were, as far as they have any. */
export async function lastTimes(tx: Tx, runs: readonly { id: RunId; cursor: number }[]): Promise<Map<RunId, number>> {
  const rows = await tx<{ id: RunId; at: number }[]>`
    select t.id, e.at::float8 as at
    from ${unnest(tx, 't', runs, { id: 'text', cursor: 'int' })}
    cross join lateral (select at from run_events where run_id = t.id and cursor = t.cursor offset 0) e`
  return new Map(rows.map(({ id, at }) => [id, at]))
}

export interface Page {
  /** At the moment at which the events were read. */
  position: LogPosition
  events: StoredEvent[]
  /** More may follow at once: the page is full. */
  isFull: boolean
}

type Row = LogPosition & { last: number; bytes: number } & (StoredEvent | Record<keyof StoredEvent, null>)

/**
 * Events after `since` in order, as many as a page takes by number and by size, and one at least where there is one.
 * Undefined: no such run in this org.
 */
export async function after(
  db: Db,
  orgId: string,
  runId: RunId,
  read: { since: number; channels: readonly Channel[]; limit: number; bytes: number },
): Promise<Page | undefined> {
  const rows = await db<Row[]>`
    with log as (${positionOf(db, orgId, runId)}),
    page as (
      select cursor, at, channel, type, data,
             sum(octet_length(data)) over (order by cursor rows unbounded preceding)::int as bytes
      from run_events
      where run_id = ${runId} and cursor > ${read.since}::bigint and channel = any(${[...read.channels]})
      order by cursor
      limit ${read.limit}
    )
    select log.status, log.cursor as last, log.deleted_at,
           page.cursor, page.at::float8 as at, page.channel, page.type, page.data as data_text, page.bytes
    from log
    left join page on page.bytes - octet_length(page.data) < ${read.bytes}
    order by page.cursor`
  const [first] = rows
  if (!first) return undefined
  const events = rows.flatMap(eventOf)
  const isFull = events.length >= read.limit || (rows.at(-1)?.bytes ?? 0) >= read.bytes
  const { status, last: cursor, deletedAt } = first
  return { position: { status, cursor, deletedAt }, events, isFull }
}

/** A log without news is a row without an event. */
function eventOf({ cursor, at, channel, type, dataText }: Row): StoredEvent[] {
  return cursor === null ? [] : [{ cursor, at, channel, type, dataText }]
}
