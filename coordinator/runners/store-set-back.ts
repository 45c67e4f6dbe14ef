import { CORRECTION_MS } from '../db/clock-difference.ts'
import type { Db, Sql } from '../db/client.ts'
import type { Pass } from '../engine/commit/clock-set-back.ts'

/**
 * Times of what has been are now at the latest, and none is in quarantine for longer than `quarantineMs`. Deadlines of
 * drains stay: somebody has chosen them. Those that others have locked are passed over.
 */
export async function putIntakesBack(db: Db, quarantineMs: number): Promise<Pass> {
  const now: Part = db`now()`
  const latestEnd: Part = db`now() + ${quarantineMs} * interval '1 millisecond'`
  const [pass] = await db<[Pass]>`
    with ahead as materialized (
      select runner_id
      from runner_intake
      where since > now() + ${CORRECTION_MS} * interval '1 millisecond'
         or quarantined_until > now() + ${quarantineMs + CORRECTION_MS} * interval '1 millisecond'
         or now() + ${CORRECTION_MS} * interval '1 millisecond' < any(failures)
    ),
    free as materialized (
      select runner_id
      from runner_intake
      where runner_id in (select runner_id from ahead)
      order by runner_id
      for update skip locked
    ),
    moved as (
      update runner_intake
      set
        since             = least(since, now()),
        failures          = array(select least(at, now()) from unnest(failures) at),
        quarantined_at    = ${notAfter(db, db`quarantined_at`, now)},
        quarantined_until = ${notAfter(db, db`quarantined_until`, latestEnd)}
      where runner_id in (select runner_id from free)
      returning runner_id
    )
    select (select count(*) from moved)::int as moved,
           (select count(*) from ahead)::int - (select count(*) from free)::int as left`
  return pass
}

/**
 * Nobody was heard, and nobody left, at a time which is still to come: a host that starts anew would be taken for a
 * copy of one that was heard just now.
 */
export async function putHeardBack(db: Db): Promise<Pass> {
  const now: Part = db`now()`
  const [pass] = await db<[Pass]>`
    with ahead as materialized (
      select id
      from runners
      where deregistered_at is null
        and greatest(last_heartbeat_at, last_poll_at, disconnected_at, copy_refused_at)
          > now() + ${CORRECTION_MS} * interval '1 millisecond'
    ),
    free as materialized (
      select id
      from runners
      where id in (select id from ahead)
      order by id
      for no key update skip locked
    ),
    moved as (
      update runners
      set
        last_heartbeat_at = ${notAfter(db, db`last_heartbeat_at`, now)},
        last_poll_at      = ${notAfter(db, db`last_poll_at`, now)},
        disconnected_at   = ${notAfter(db, db`disconnected_at`, now)},
        connected_at      = ${notAfter(db, db`connected_at`, now)},
        copy_refused_at   = ${notAfter(db, db`copy_refused_at`, now)}
      where id in (select id from free)
      returning id
    )
    select (select count(*) from moved)::int as moved,
           (select count(*) from ahead)::int - (select count(*) from free)::int as left`
  return pass
}

type Part = ReturnType<Sql>

/** `least` ignores null and would return `limit` for a time that there is not. */
const notAfter = (sql: Sql, time: Part, limit: Part): Part =>
  sql`case when ${time} is not null then least(${time}, ${limit}) end`
