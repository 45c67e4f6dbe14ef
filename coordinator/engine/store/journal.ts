import type { OrgId, RunId } from '@windlass/shared/ids.ts'
import type { JournalRecord } from '@windlass/shared/wire/journal.ts'
import type { Db, Tx } from '../../db/client.ts'
import { amongIds, onlyFilters, runById } from '../../db/by-key.ts'
import { byMonth } from '../../db/partitions.ts'
import { unnest } from '../../db/unnest.ts'
import type { JournalChanges } from '../rules/journal.ts'
import type { Moving } from '../rules/run.ts'
import { isTimer } from './timers.ts'

/** A run and what happens to its journal. */
export interface Changed {
  id: RunId
  journal: JournalChanges
}

export const flat = <T extends object>(runs: readonly Changed[], of: (run: Changed) => readonly T[]) =>
  runs.flatMap((run) => of(run).map((change) => ({ ...change, runId: run.id })))

/**
 * Writes new entries. One that was open already and that the program now has completed itself gets its result; sent
 * again it changes nothing. It gets its place too: taken over by this attempt in the same batch, it still has that of
 * an earlier one, and `adopt` finds it in this attempt.
 */
export function insert(tx: Tx, runs: readonly Changed[]): PromiseLike<unknown> {
  const rows = flat(runs, (run) => run.journal.entries)
  return tx`
    insert into journal (run_id, n, attempt, position, parent, kind, name, hash, occurrence, args, site, state, result, child_run_id,
                         due_at, completed_at)
    select run_id, n, attempt, position, parent, kind, name, hash, occurrence, args, site, state, result, child_run_id,
           coalesce(now() + in_ms * interval '1 millisecond', to_timestamp(due_at::float8 / 1000)),
           case when state <> 'open' then now() end
    from ${unnest(tx, 't', rows, {
      runId: 'text',
      n: 'int',
      attempt: 'int',
      position: 'int',
      parent: 'text',
      kind: 'text',
      name: 'text',
      hash: 'text',
      occurrence: 'int',
      args: 'text',
      site: 'text',
      state: 'text',
      result: 'text',
      childRunId: 'text',
      inMs: ['float8', ({ due }) => (due && 'inMs' in due ? due.inMs : null)],
      dueAt: ['bigint', ({ due }) => (due && 'at' in due ? due.at : null)],
    })}
    on conflict (run_id, n) do update
    set state = excluded.state, result = excluded.result, completed_at = excluded.completed_at, attempt = excluded.attempt,
        position = excluded.position
    where journal.kind = 'step' and journal.state = 'open' and excluded.state <> 'open'`
}

/**
 * Calls of this attempt take over entries of an earlier one. Also what has failed since it was handed over: the call of
 * this attempt waits for it. Where an entry stood stays known: this attempt may be lost before it is given it.
 */
export function adopt(tx: Tx, runs: readonly Changed[]): PromiseLike<unknown> {
  const rows = flat(runs, (run) => run.journal.adopted)
  return tx`
    update journal j
    set attempt = m.attempt, position = m.position, delivered = null, after = 0, idle = false,
        former = case when j.delivered is null then j.former else array[j.attempt, j.delivered, j.after] end
    from ${unnest(tx, 'm', rows, { runId: 'text', n: 'int', attempt: 'int', position: 'int' })}
    where j.run_id = m.run_id and j.n = m.n and j.attempt < m.attempt and j.state <> 'closed'`
}

export function drift(tx: Tx, runs: readonly Changed[]): PromiseLike<unknown> {
  const rows = flat(runs, (run) => run.journal.drifted)
  return tx`
    update journal j
    set has_drifted = true
    from ${unnest(tx, 'm', rows, { runId: 'text', n: 'int' })}
    where j.run_id = m.run_id and j.n = m.n`
}

/** What the programs have been given, and in which order. */
export function deliver(tx: Tx, runs: readonly Changed[]): PromiseLike<unknown> {
  const rows = flat(runs, (run) =>
    run.journal.delivered.map(({ delivery: [order, n, after, idle], attempt }) => ({ order, n, after, idle, attempt })),
  )
  return tx`
    update journal j
    set delivered = m.place, after = m.after, idle = m.idle = 1
    from ${unnest(tx, 'm', rows, {
      runId: 'text',
      n: 'int',
      place: ['int', (r) => r.order],
      after: 'int',
      idle: 'int',
      attempt: 'int',
    })}
    where j.run_id = m.run_id and j.n = m.n and j.attempt = m.attempt and j.state in ('done', 'failed')
      and j.delivered is null`
}

/**
 * The first completion counts, and the order given is the order in which programs get them. The time that a waited-for
 * entry had goes with its timer.
 */
export function complete(tx: Tx, runs: readonly Changed[]): PromiseLike<unknown> {
  const rows = flat(runs, (run) => run.journal.completed)
  return tx`
    with m as materialized (
      select *, nextval('journal_completions') as completion
      from (
        select *
        from ${unnest(tx, 't', rows, {
          runId: 'text',
          n: 'int',
          state: 'text',
          result: 'text',
          place: 'ordinality',
        })}
        order by place
      ) in_order
    ),
    done as (
      update journal j
      set state = m.state, result = m.result, completed_at = now(), completion = m.completion
      from m
      where j.run_id = m.run_id and j.n = m.n and ${onlyFilters(tx, tx`j.state = 'open'`)}
      returning j.run_id, j.n
    )
    delete from timers t
    using (select run_id, unnest(array['sleep', 'input']) as kind, n from done) m
    where ${isTimer(tx)}`
}

/** Nobody waits any more for what is open. A statement a month; none is sent before it is awaited. */
export function close(tx: Tx, runIds: readonly RunId[]): PromiseLike<unknown>[] {
  const closed = (ids: RunId[]) =>
    tx`update journal set state = 'closed' where ${amongIds(tx, tx`run_id`, ids)} and state = 'open'`
  return byMonth(runIds).map(closed)
}

/**
 * The next attempt begins with an empty journal. Only what the last one had made is closed: there may be a thousand
 * attempts with 25,000 entries each.
 */
export function forget(tx: Tx, runs: readonly Changed[]): PromiseLike<unknown> {
  const rows = flat(runs, ({ journal: { forgotten } }) => (forgotten ? [forgotten] : []))
  return tx`
    update journal j
    set state = 'closed'
    from ${unnest(tx, 'm', rows, { runId: 'text', after: 'int' })}
    where j.run_id = m.run_id and j.n > m.after`
}

/** Bytes of an entry, as its texts are stored: read without unpacking them. */
const sizeOf = (db: Db) => db`
  (300 + octet_length(parent) + octet_length(name) + octet_length(args) + octet_length(site)
   + coalesce(octet_length(result), 0))`

/**
 * Everything that new processes of these runs are told, as JSON of `JournalRecord[]`, where it is not longer than so
 * much. Longer ones are not put together at all: to print 32 MiB may take half a minute.
 */
export function recordsOf(
  db: Db,
  runs: readonly { runId: RunId; forgottenEntries: number }[],
  mostBytes: number,
): Promise<{ runId: RunId; text: string }[]> {
  return db<{ runId: RunId; text: string }[]>`
    select m.run_id, records.text
    from ${unnest(db, 'm', runs, { runId: 'text', forgottenEntries: 'int' })}
    cross join lateral (${runById(db, db`m.run_id`)}) r
    cross join lateral (
      select sum(${sizeOf(db)}) as bytes
      from journal j
      where j.run_id = m.run_id and j.n > m.forgotten_entries and j.state <> 'closed'
    ) sizes
    cross join lateral (
      select
        json_agg(
          json_build_object(
            'n', n, 'attempt', j.attempt, 'position', position, 'drifted', has_drifted, 'parent', parent, 'kind', kind, 'name', name, 'hash', hash,
            'occurrence', occurrence, 'args', args, 'site', site, 'state', state, 'result', result,
            'delivered', delivered, 'after', after, 'idle', idle, 'former', former, 'completed', completion,
            'lost', j.attempt = any(r.lost_attempts)
          )
          order by n
        )::text as text
      from journal j
      where sizes.bytes <= ${mostBytes}::bigint
        and j.run_id = m.run_id and j.n > m.forgotten_entries and j.state <> 'closed'
    ) records
    where records.text is not null`
}

/** The last completion that the program has not been given; 0: there is none. */
export async function lastCompletion(db: Db, runId: RunId): Promise<number> {
  const [row] = await db<[{ last: number }]>`
    select coalesce(max(completion), 0)::float8 as last
    from journal
    where run_id = ${runId} and completion is not null and delivered is null`
  return row.last
}

const PAGE_ENTRIES = 500
/** One entry may come on top. */
const PAGE_BYTES = 128 * 1024

/**
 * The next entries of a journal, as it was when `last` was its last completion: all pages together show one moment, or
 * a program would be given results in another order than that in which they came.
 */
export function recordsAfter(db: Db, runId: RunId, { n, last }: { n: number; last: number }): Promise<JournalRecord[]> {
  return db<JournalRecord[]>`
    with seen as (
      select j.*, (completion > ${last}::bigint and delivered is null) is true as is_later, ${sizeOf(db)} as size
      from journal j
      where j.run_id = ${runId} and j.n > ${n}::int
    ),
    page as (
      select *, sum(size) over (order by n rows unbounded preceding) as bytes
      from seen
      where state <> 'closed'
      order by n
      limit ${PAGE_ENTRIES}
    )
    select n, attempt, position, has_drifted as drifted, parent, kind, name, hash, occurrence, args, site,
           case when is_later then 'open' else state end as state,
           case when is_later then null else result end as result,
           delivered, after, idle, former,
           attempt = any((select lost_attempts from runs where id = ${runId})::int[]) as lost,
           case when is_later then null else completion::float8 end as completed
    from page
    where bytes - size < ${PAGE_BYTES}
    order by n`
}

type PlacedRun = Pick<Moving, 'runnerId' | 'epoch' | 'forgottenEntries' | 'place'>

/** Where a run is. Undefined: there is no such run in this org. */
export async function placedRun(db: Db, orgId: OrgId, runId: RunId): Promise<PlacedRun | undefined> {
  const [row] = await db<PlacedRun[]>`
    select runner_id, epoch, forgotten_entries, place
    from runs
    where id = ${runId} and ${onlyFilters(db, db`org_id = ${orgId}`)}`
  return row
}
