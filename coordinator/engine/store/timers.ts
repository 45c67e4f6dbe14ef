import type { OrgId, RunId } from '@windlass/shared/ids.ts'
import type { Db, Sql, Tx } from '../../db/client.ts'
import { foundBy, onlyFilters } from '../../db/by-key.ts'
import type { Fragment } from '../../db/newest.ts'
import { shareOf } from '../../db/share.ts'
import { unnest } from '../../db/unnest.ts'
import type { Due } from '../rules/journal.ts'
import { dueSoon, fromFloor, nearFloor } from './floors.ts'

/** sleep, input: completes entry `n` · enqueue: enters the queue · queue-timeout, wall-timeout: ends the run. */
export type TimerKind = 'sleep' | 'input' | 'enqueue' | 'queue-timeout' | 'wall-timeout'

export interface NewTimer {
  runId: RunId
  kind: TimerKind
  n: number
  due: Due
  /**
   * What an `enqueue` waits for besides its time; null or left out: nothing. Of a `wall-timeout` since when it is put
   * off, in milliseconds since the epoch.
   */
  holds?: string | null
}

export async function insert(tx: Tx, timers: readonly NewTimer[]): Promise<void> {
  if (timers.length === 0) return
  await tx`
    insert into timers (run_id, org_id, kind, n, due_at, holds)
    -- A join would read all runs while the planner takes the tables for empty.
    select t.run_id, coalesce((select org_id from runs where id = t.run_id), ''), t.kind, t.n,
           coalesce(now() + t.in_ms * interval '1 millisecond', to_timestamp(t.at::float8 / 1000)), t.holds
    from ${unnest(tx, 't', timers, {
      runId: 'text',
      kind: 'text',
      n: 'int',
      inMs: ['float8', ({ due }) => ('inMs' in due ? due.inMs : null)],
      at: ['bigint', ({ due }) => ('at' in due ? due.at : null)],
      holds: ['text', ({ holds }) => holds],
    })}
    on conflict (run_id, kind, n) do update set due_at = excluded.due_at, holds = excluded.holds`
}

export interface DueTimer {
  runId: RunId
  kind: TimerKind
  n: number
}

/** `inMs` is negative or 0 when it is due. */
export type Upcoming = DueTimer & { orgId: OrgId; inMs: number }

/** Timers that are under way elsewhere, or wait there. */
export interface PassedOver {
  /** Orgs of which none that ends a run is found. */
  endsOf: readonly OrgId[]
  /** And runs. */
  endsOfRuns: readonly RunId[]
  /** Orgs of which no question is found. */
  questionsOf: readonly OrgId[]
  /** Orgs of which no sleep is found, and nothing that enters the queue. */
  wakesOf: readonly OrgId[]
  /** Runs of which none is found. */
  runs: readonly RunId[]
  /** Their orgs, where these are known. */
  runsOf: readonly OrgId[]
}

const NOTHING: PassedOver = { endsOf: [], endsOfRuns: [], questionsOf: [], wakesOf: [], runs: [], runsOf: [] }

/**
 * Of an org of which something is passed over: all its rows would be read, each time. What of it lies behind so many
 * that are due waits for these; others wait some 10 ms for it.
 */
const READ_OF_ORG = 10_000

/**
 * What is due by now: of each org in turn one, its most overdue first; and after those what is due next, if that is
 * soon. What is passed over takes no room in it, and hides nothing that is due later.
 * Not locked: whoever acts on it takes it away under the lock of its run. Begins at `floor`, see `TimerFloor`.
 */
export function upcoming(
  db: Db,
  limit: number,
  passed: PassedOver = NOTHING,
  floor: number = -Infinity,
): Promise<Upcoming[]> {
  const { endsOf, endsOfRuns, questionsOf, wakesOf, runs, runsOf } = passed
  const bounded = [...endsOf, ...questionsOf, ...wakesOf, ...runsOf]
  const isAbove = fromFloor(db, floor)
  const isNear = nearFloor(db, floor)
  return db<Upcoming[]>`
    with recursive orgs as (
      (select org_id from timers where ${isNear} order by org_id limit 1)
      union all
      select (select org_id from timers where org_id > o.org_id and ${isNear} order by org_id limit 1)
      from orgs o
      where o.org_id is not null
    ),
    share as materialized (${shareOf(
      db,
      db`
        select count(*) from orgs o where exists (
          select from timers where org_id = o.org_id and due_at <= now() and ${isAbove} offset 0
        )`,
      limit,
    )})
    select next.run_id, next.org_id, next.kind, next.n,
           (extract(epoch from next.due_at - now()) * 1000)::float8 as in_ms
    from orgs o
    cross join lateral (
      select due.*, row_number() over (order by due.due_at, due.run_id, due.n) as turn
      from (
        select *
        from (
          select *
          from timers
          where org_id = o.org_id and due_at <= now() and ${isAbove}
          order by due_at
          limit case when o.org_id = any(${bounded}) then ${READ_OF_ORG}::int end
        ) seen
        where case kind
          when 'queue-timeout' then org_id <> all(${[...endsOf]}) and run_id <> all(${[...endsOfRuns]})
          when 'wall-timeout' then org_id <> all(${[...endsOf]}) and run_id <> all(${[...endsOfRuns]})
          when 'input' then org_id <> all(${[...questionsOf]})
          else org_id <> all(${[...wakesOf]})
        end and run_id <> all(${[...runs]})
        order by due_at
        limit (select each from share)
      ) due
      union all
      (
        select *, null
        from timers
        where org_id = o.org_id and due_at > now() and ${dueSoon(db)}
        order by due_at
        limit 1
      )
    ) next
    where o.org_id is not null
    order by next.turn, next.due_at, next.run_id, next.n
    limit ${limit}`
}

/** Of these runs those that may have to wait for the lock of a limit. */
export async function limitedAmong(db: Db, runIds: readonly RunId[]): Promise<Set<RunId>> {
  if (runIds.length === 0) return new Set()
  const rows = await db<{ id: RunId }[]>`
    select r.id
    from unnest(${[...new Set(runIds)]}::text[]) as m (id)
    join runs r on r.id = m.id
    where r.concurrency_group is not null
      or exists (
        select from timers t where t.run_id = r.id and t.kind = 'enqueue' and t.holds is not null offset 0
      )`
  return new Set(rows.map((row) => row.id))
}

/**
 * That timer `t` is the one that `m` names, for a join: each is looked up by its whole key. A run may have 25,000, and
 * whatever finds them by their run passes over all of these for each.
 */
export const isTimer = (sql: Sql): Fragment => sql`
  ${foundBy(sql, sql`t.run_id`, sql`m.run_id`)} and ${foundBy(sql, sql`t.kind`, sql`m.kind`)}
  and ${foundBy(sql, sql`t.n`, sql`m.n`)}`

/** Takes those away that are still there and due. */
export function take(tx: Tx, timers: readonly DueTimer[]): Promise<(DueTimer & { holds: string | null })[]> {
  return tx<(DueTimer & { holds: string | null })[]>`
    delete from timers t
    using ${unnest(tx, 'm', timers, { runId: 'text', kind: 'text', n: 'int' })}
    where ${isTimer(tx)} and ${onlyFilters(tx, tx`t.due_at <= now()`)}
    returning t.run_id, t.kind, t.n, t.holds`
}

/** These runs enter the queue so much later than now, and may then wait there as long as they may. */
export async function enterLater(tx: Tx, runs: readonly { id: RunId; inMs: number }[]): Promise<void> {
  await tx`
    with later as (
      select * from ${unnest(tx, 't', runs, { id: 'text', inMs: 'float8' })}
    ),
    waiting as (
      update timers t
      set due_at = t.due_at + (now() + l.in_ms * interval '1 millisecond' - r.queued_at)
      from later l
      join runs r on r.id = l.id
      where ${foundBy(tx, tx`t.run_id`, tx`l.id`)} and t.kind = 'queue-timeout'
    )
    update runs r
    set queued_at = now() + l.in_ms * interval '1 millisecond'
    from later l
    where r.id = l.id`
}

/** No `timeout.queue` is shorter: a run that is not late by this much enters before its time is over. */
const LATE = '1 second'

/** Those of these runs whose time to enter the queue, for the first time, was well before now. */
export async function enteringLate(tx: Tx, ids: readonly RunId[]): Promise<RunId[]> {
  const rows = await tx<{ id: RunId }[]>`
    select id
    from runs
    where id = any(${[...ids]}) and ${onlyFilters(tx, tx`queued_at < now() - ${LATE}::text::interval`)}`
  return rows.map(({ id }) => id)
}

/** Those of these runs that enter the queue by a timer that is still there. */
export async function yetToEnter(tx: Tx, ids: readonly RunId[]): Promise<RunId[]> {
  const rows = await tx<{ runId: RunId }[]>`
    select run_id from timers where run_id = any(${[...ids]}) and kind = 'enqueue'`
  return rows.map(({ runId }) => runId)
}

/** They stay in this order: of two sleeps of a run the shorter one has to win. */
export async function putOff(db: Db, timers: readonly DueTimer[], ms: number): Promise<void> {
  await db`
    update timers t
    set due_at = now() + ${ms} * interval '1 millisecond' + m.nth * interval '1 microsecond'
    from ${unnest(db, 'm', timers, { runId: 'text', kind: 'text', n: 'int', nth: ['int', (_, i) => i] })}
    where ${isTimer(db)}`
}

/** Nothing of these runs becomes due any more. */
export function drop(tx: Tx, runIds: readonly RunId[]): PromiseLike<unknown> {
  return tx`delete from timers where run_id = any(${[...runIds]})`
}

/** Drops the waits of runs that begin anew. The time of the whole run goes on. */
export function dropWaits(tx: Tx, runIds: readonly RunId[]): PromiseLike<unknown> {
  return tx`delete from timers where run_id = any(${[...runIds]}) and kind in ('sleep', 'input')`
}
