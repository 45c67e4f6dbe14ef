/**
 * Timers that are due and are put off, as what they would decide may have been decided by somebody whom we have not
 * heard yet. Each act answers those that it has put off. It waits for nobody: what is locked is left to who has it.
 */
import type { RunId } from '@windlass/shared/ids.ts'
import { amongIds, foundBy, onlyFilters, runById } from '../../db/by-key.ts'
import type { Db, Sql } from '../../db/client.ts'
import type { Fragment } from '../../db/newest.ts'
import { isInDoubt, isSilent } from './doubt.ts'
import { type DueTimer, isTimer } from './timers.ts'

/** So long an agent that comes and goes keeps the time of its run from being over. */
const MOST_MS = 600_000

/** To put one timer of many off takes some 30 µs: a run that has 25,000 is put off for 10 s. */
const MS_AN_ENTRY = 0.4

const ms = (sql: Sql, length: number): Fragment => sql`${length}::float8 * interval '1 millisecond'`
const time = (sql: Sql, at: number): Fragment => sql`to_timestamp(${at}::float8 / 1000)`

/** `found` ends with the expression of that name: the timers, in their order by `nth`, and for how long each. */
function putOff(db: Db, found: Fragment): Promise<DueTimer[]> {
  return db<DueTimer[]>`
    with ${found},
    free as materialized (
      select t.run_id, t.kind, t.n, m.nth, m.length
      from found m
      join timers t on ${isTimer(db)}
      where ${onlyFilters(db, db`t.due_at <= now() + m.length`)}
      for update of t skip locked
    )
    update timers t
    set due_at = now() + ${longer(db)} + m.nth * interval '1 microsecond',
        holds = case
          when t.kind = 'wall-timeout' then coalesce(t.holds, (extract(epoch from now()) * 1000)::bigint::text)
          else t.holds
        end
    from free m
    where ${isTimer(db)}
    returning t.run_id, t.kind, t.n`
}

/** Those that may wait for a day are looked at less and less often. */
const longer = (db: Db): Fragment => db`
  case
    when t.kind = 'wall-timeout' and t.holds is not null then greatest(
      m.length,
      least((now() - to_timestamp(t.holds::float8 / 1000)) / 12, '30 seconds')
    )
    else m.length
  end`

export interface Doubt {
  /** An agent that was not heard for so long is in doubt. */
  silentMs: number
  /** For how long the timers are put off. */
  forMs: number
}

const isHeld = (db: Db, silentMs: number): Fragment =>
  onlyFilters(db, db`p.accepted_at is not null and ${isInDoubt(db, silentMs)}`)

/**
 * Those that end these runs, while they have a process and are in doubt. Of a silent agent that ends with the lease;
 * one that connects again and again may do so for ever, so it is kept since when the timer is put off.
 */
export function holdWalls(db: Db, runIds: readonly RunId[], { silentMs, forMs }: Doubt): Promise<DueTimer[]> {
  const isLately = db`coalesce(to_timestamp(t.holds::float8 / 1000) > now() - ${ms(db, MOST_MS)}, true)`
  const found = db`
    doubtful as materialized (
      select p.run_id, ${isSilent(db, silentMs)} as is_silent
      from placements p
      join runners r on ${foundBy(db, db`r.id`, db`p.runner_id`)}
      where p.run_id = any(${[...runIds]}) and ${isHeld(db, silentMs)}
    ),
    found as materialized (
      select t.run_id, t.kind, t.n, 0 as nth, ${ms(db, forMs)} as length
      from doubtful d
      join timers t on ${foundBy(db, db`t.run_id`, db`d.run_id`)} and t.kind = 'wall-timeout'
      where ${onlyFilters(db, db`t.due_at <= now()`)} and (d.is_silent or ${isLately})
    )`
  return putOff(db, found)
}

/**
 * Sleeps and questions of those of these runs that wait for a child in doubt: it may have ended first. With what comes
 * due meanwhile, in its order: of two sleeps of a run the shorter one has to win. All of a run are put off at once, so
 * one with a long journal for longer.
 */
export function holdWakes(db: Db, runIds: readonly RunId[], { silentMs, forMs }: Doubt): Promise<DueTimer[]> {
  const found = db`
    called as materialized (
      select run_id, child_run_id
      from journal
      where ${amongIds(db, db`run_id`, runIds)} and state = 'open' and ${onlyFilters(db, db`child_run_id is not null`)}
    ),
    waiting as materialized (
      select distinct c.run_id
      from called c
      join placements p on ${foundBy(db, db`p.run_id`, db`c.child_run_id`)}
      join runners r on ${foundBy(db, db`r.id`, db`p.runner_id`)}
      where ${isHeld(db, silentMs)}
    ),
    doubtful as materialized (
      select w.run_id,
             greatest(${ms(db, forMs)}, ${ms(db, MS_AN_ENTRY)} * (r.entries - r.forgotten_entries)) as length
      from waiting w
      cross join lateral (${runById(db, db`w.run_id`)}) r
    ),
    found as materialized (
      select t.run_id, t.kind, t.n, row_number() over (partition by t.run_id order by t.due_at, t.n) as nth, d.length
      from doubtful d
      join timers t on ${foundBy(db, db`t.run_id`, db`d.run_id`)}
      where ${onlyFilters(db, db`t.kind in ('sleep', 'input') and t.due_at <= now() + d.length`)}
    )`
  return putOff(db, found)
}

interface Since {
  /** The end of the outage, in milliseconds since the epoch. */
  gapAtMs: number
  forMs: number
}

/**
 * Queue timeouts of runs that waited in the queue before the end of the outage, or that have yet to enter it though
 * their turn has come: an entry that is late gives them all their time, see `late-entries.ts`.
 */
export function holdQueues(db: Db, runIds: readonly RunId[], { gapAtMs, forMs }: Since): Promise<DueTimer[]> {
  const found = db`
    found as materialized (
      select r.id as run_id, 'queue-timeout' as kind, 0 as n, 0 as nth, ${ms(db, forMs)} as length
      from runs r
      where r.id = any(${[...runIds]})
        and (
          ${onlyFilters(db, db`r.queued_at < ${time(db, gapAtMs)}`)}
          or exists (
            select from timers e where e.run_id = r.id and e.kind = 'enqueue' and e.due_at <= now() offset 0
          )
        )
    )`
  return putOff(db, found)
}

/**
 * Questions of which the time was over before the end of the outage. With the sleeps and questions of the same run that
 * come due meanwhile, in their order, or a longer one could overtake it.
 */
export function holdQuestions(db: Db, runIds: readonly RunId[], { gapAtMs, forMs }: Since): Promise<DueTimer[]> {
  const found = db`
    asking as materialized (
      select distinct run_id
      from inputs
      where run_id = any(${[...runIds]}) and status = 'open' and ${onlyFilters(db, db`due_at < ${time(db, gapAtMs)}`)}
    ),
    found as materialized (
      select t.run_id, t.kind, t.n, row_number() over (order by t.due_at, t.run_id, t.n) as nth,
             ${ms(db, forMs)} as length
      from asking a
      join timers t on ${foundBy(db, db`t.run_id`, db`a.run_id`)}
      where ${onlyFilters(db, db`t.kind in ('sleep', 'input') and t.due_at <= now() + ${ms(db, forMs)}`)}
    )`
  return putOff(db, found)
}
