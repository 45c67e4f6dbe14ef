import type { PoolId } from '@windlass/shared/ids.ts'
import type { Db } from '../../db/client.ts'

/** The position that the queue has given last. */
export async function lastPosition(db: Db): Promise<number> {
  const [row] = await db<[{ position: number }]>`
    select last_value::float8 as position from run_queue_position_seq`
  return row.position
}

/** Of a transaction behind all that have written something by now. The end of a snapshot may be before some of them. */
export async function transactionsBegun(db: Db): Promise<string> {
  const [row] = await db<[{ xid: string }]>`select pg_current_xact_id()::text as xid`
  return row.xid
}

/** All those before this one are over. Whoever only reads, as a dump does, does not count. */
export async function haveEnded(db: Db, xid: string): Promise<boolean> {
  const [row] = await db<[{ haveEnded: boolean }]>`
    select pg_snapshot_xmin(pg_current_snapshot()) >= ${xid}::text::xid8 as have_ended`
  return row.haveEnded
}

/** The lowest position in the queue of this pool up to `most`. Looks at all that wait there, and all that did. */
export async function firstPosition(db: Db, poolId: PoolId, most: number): Promise<number | null> {
  const [row] = await db<[{ position: number | null }]>`
    select min(position)::float8 as position
    from run_queue
    where pool_id = ${poolId} and position <= ${most}`
  return row.position
}

/** So long a transaction may take, from which its timers count their times. */
const SLACK = '30 seconds'

/**
 * Condition on the timers from this moment on, in milliseconds since the epoch; -Infinity: from the beginning. It goes
 * back with the clock of the database, and leaves out nothing that is set by now.
 */
export const fromFloor = (db: Db, floor: number) =>
  db`due_at >= least(to_timestamp(${floor}::float8 / 1000), now() - ${SLACK}::text::interval)`

/** Looks for what is due come more often, see `createTimers`. */
const AHEAD = '5 seconds'

/**
 * Condition on the timers that may be due before the next look. Whoever looks further ahead passes over what was set
 * for some day and has gone since: each run may bring a time limit of hours.
 */
export const dueSoon = (db: Db) => db`due_at <= now() + ${AHEAD}::text::interval`

/**
 * Condition for a look for orgs: where looks begin at a floor, those of which something is due soon. Else there is
 * nothing to pass over, and before PostgreSQL 18 all that waits would be.
 */
export const nearFloor = (db: Db, floor: number) =>
  floor === -Infinity ? fromFloor(db, floor) : db`${fromFloor(db, floor)} and ${dueSoon(db)}`

/**
 * When the first timer is due, or could be that is set by now. Looks at all that were due, org by org: before
 * PostgreSQL 18 the index would be read from end to end otherwise, with all that is due some day.
 */
export async function firstDue(db: Db): Promise<number> {
  const [row] = await db<[{ at: number }]>`
    with recursive orgs as (
      (select org_id from timers order by org_id limit 1)
      union all
      select (select t.org_id from timers t where t.org_id > o.org_id order by t.org_id limit 1)
      from orgs o
      where o.org_id is not null
    )
    select extract(epoch from coalesce(min(f.due_at), now() - ${SLACK}::text::interval))::float8 * 1000 as at
    from orgs o
    cross join lateral (
      select due_at
      from timers
      where org_id = o.org_id and due_at < now() - ${SLACK}::text::interval
      order by due_at
      limit 1
    ) f`
  // The fraction of a millisecond may have been rounded.
  return Math.floor(row.at) - 1
}
