/** A database whose clock a test moves, as a failover to a host with another clock does. */
import type { Db } from '../../db/client.ts'

/** To be done before sessions are opened: these find our `now()` and `clock_timestamp()` before those of PostgreSQL. */
export async function makeClockMovable(db: Db): Promise<void> {
  const [{ name }] = await db<[{ name: string }]>`select current_database() as name`
  await db`create schema shifted`
  await db`create table shifted.clock (by interval not null)`
  await db`insert into shifted.clock (by) values (interval '0')`
  await db`
    create function shifted.now() returns timestamptz language sql volatile
    begin atomic select pg_catalog.now() + by from shifted.clock; end`
  await db`
    create function shifted.clock_timestamp() returns timestamptz language sql volatile
    begin atomic select pg_catalog.clock_timestamp() + by from shifted.clock; end`
  await db`alter table placements alter column offered_at set default shifted.now()`
  await db`alter database ${db(name)} set search_path = public, shifted, pg_catalog`
}

/** From now on it is later by so much; earlier, when that is negative. */
export async function moveClock(db: Db, byMs: number): Promise<void> {
  await db`update shifted.clock set by = by + ${byMs} * interval '1 millisecond'`
}
