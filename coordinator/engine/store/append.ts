import type { RunId, RunnerId } from '@windlass/shared/ids.ts'
import { foundBy } from '../../db/by-key.ts'
import type { Db } from '../../db/client.ts'
import { unnest } from '../../db/unnest.ts'
import type { NewEvent } from '../../events/store.ts'
import { MOST_CHARS, type NewEntry } from '../rules/journal.ts'

type CompletedEntry = Omit<NewEntry, 'attempt' | 'childRunId' | 'due'>

/** What one run adds to its log and its journal. */
export interface Addition {
  runId: RunId
  runnerId: RunnerId
  epoch: number
  /** Numbers of the first and the last entry from the agent. */
  first: number
  last: number
  /** Cursors count from 1 here, and go on from the run's own in the database. */
  events: NewEvent[]
  /** Completed by the program itself. */
  entries: CompletedEntry[]
  /** Characters that its journal counts for what was completed. */
  chars: number
}

/**
 * Adds to logs and journals in one statement, where the usual way takes four in turn (begin, lock, write, commit): a step of a
 * program waits for this. Answers the runs that it was done for. All others are left as they were: they are not held by this
 * runner any more, miss entries before these, or have them already.
 */
export async function append(db: Db, additions: Addition[]): Promise<Set<RunId>> {
  const events = additions.flatMap((one, i) => one.events.map((event) => ({ ...event, i: i + 1 })))
  const entries = additions.flatMap((one, i) => one.entries.map((entry) => ({ ...entry, runId: one.runId, i: i + 1 })))
  const rows = await db<{ id: RunId }[]>`
    with b as (
      select *
      from ${totalsOf(db, additions)}
    ),
    moved as (
      update runs r
      set seq = b.last, cursor = r.cursor + b.events, entries = greatest(r.entries, b.entries),
          journal_chars = r.journal_chars + b.chars
      from b
      where r.id = b.run_id and r.runner_id = b.runner_id and r.epoch = b.epoch and r.seq = b.first - 1
        and r.place is not null and r.status = 'running' and r.timed_out_at is null
        and r.journal_chars + b.chars < ${MOST_CHARS}::bigint
      returning b.i, r.id, r.cursor - b.events as cursor, r.attempt
    ),
    -- Of what is added to the second of the same run, the first only; and no heartbeat is waited for.
    acked as (
      update placements p
      set acked_at = now(), refused_since = null
      from (
        select l.run_id
        from moved m
        join placements l on ${foundBy(db, db`l.run_id`, db`m.id`)}
        where l.acked_at is null or l.acked_at < now() - interval '1 second' or l.refused_since is not null
        for update of l skip locked
      ) heard
      where ${foundBy(db, db`p.run_id`, db`heard.run_id`)}
    ),
    -- By place in the list, so that each of very many rows finds its run at once.
    found as (
      select array_agg(m.cursor order by b.i) as cursors, array_agg(m.attempt order by b.i) as attempts
      from b
      left join moved m on m.i = b.i
    ),
    logged as (
      insert into run_events (run_id, cursor, at, channel, type, data)
      select e.run_id, f.cursors[e.i] + e.cursor, e.at, e.channel, e.type, e.data
      from found f
      cross join ${eventRows(db, events)}
      where f.cursors[e.i] is not null
    ),
    kept as (
      insert into journal (run_id, n, attempt, position, parent, kind, name, hash, occurrence, args, site, state, result, completed_at)
      select j.run_id, j.n, f.attempts[j.i], j.position, j.parent, j.kind, j.name, j.hash, j.occurrence, j.args, j.site, j.state,
             j.result, now()
      from found f
      cross join ${entryRows(db, entries)}
      where f.attempts[j.i] is not null
      on conflict (run_id, n) do update
      set state = excluded.state, result = excluded.result, completed_at = excluded.completed_at, attempt = excluded.attempt,
          position = excluded.position
      where journal.kind = 'step' and journal.state = 'open'
    )
    select id from moved`
  return new Set(rows.map((row) => row.id))
}

interface Numbered {
  /** Place of the run among the additions, from 1 on. */
  i: number
}

function totalsOf(db: Db, additions: readonly Addition[]) {
  return unnest(db, 'b', additions, {
    i: ['int', (_, i) => i + 1],
    runId: 'text',
    runnerId: 'text',
    epoch: 'int',
    first: 'int',
    last: 'int',
    events: ['int', (a) => a.events.length],
    entries: ['int', (a) => Math.max(0, ...a.entries.map(({ n }) => n))],
    chars: 'bigint',
  })
}

function eventRows(db: Db, events: readonly (NewEvent & Numbered)[]) {
  return unnest(db, 'e', events, {
    i: 'int',
    runId: 'text',
    cursor: 'int',
    at: 'bigint',
    channel: 'text',
    type: 'text',
    data: ['text', (e) => e.dataText],
  })
}

function entryRows(db: Db, entries: readonly (CompletedEntry & Numbered & { runId: RunId })[]) {
  return unnest(db, 'j', entries, {
    i: 'int',
    runId: 'text',
    n: 'int',
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
  })
}
