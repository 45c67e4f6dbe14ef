import type { Db, Tx } from '../../db/client.ts'
import { unnest } from '../../db/unnest.ts'

/**
 * Reserves numbers for so many starts each. Answers the last number of each key. Whoever takes a turn holds the lock of
 * its key until his transaction ends, so the numbers are those of the order in which they were taken.
 */
export async function reserve(
  tx: Tx,
  counts: readonly { key: string; count: number }[],
): Promise<{ key: string; last: number }[]> {
  return tx<{ key: string; last: number }[]>`
    insert into throttles (key, last)
    select *
    from ${unnest(tx, 't', counts, { key: 'text', count: 'int' })}
    order by key
    on conflict (key) do update set last = throttles.last + excluded.last
    returning key, last::float8 as last`
}

export interface Start {
  key: string
  n: number
  /** Milliseconds since the epoch. */
  at: number
}

/** Those of these starts that are kept. */
export function starts(tx: Tx, wanted: readonly Omit<Start, 'at'>[]): Promise<Start[]> {
  return tx<Start[]>`
    select s.key, s.n::float8 as n, (extract(epoch from s.at) * 1000)::float8 as at
    from ${unnest(tx, 't', wanted, { key: 'text', n: 'bigint' })}
    join throttle_starts s on s.key = t.key and s.n = t.n`
}

/** Now, and when this transaction began, which is the `now()` of all that it writes. */
export async function clock(tx: Tx): Promise<{ now: number; begun: number }> {
  const [row] = await tx<[{ now: number; begun: number }]>`
    select (extract(epoch from clock_timestamp()) * 1000)::float8 as now,
           (extract(epoch from now()) * 1000)::float8 as begun`
  return row
}

/** Keeps these starts, and of each key forgets what nobody looks back to any more. */
export async function keep(
  tx: Tx,
  given: readonly Start[],
  keys: readonly { key: string; upTo: number; clearAt: number }[],
): Promise<void> {
  await tx`
    with kept as (
      insert into throttle_starts (key, n, at)
      select key, n, to_timestamp(at / 1000)
      from ${unnest(tx, 't', given, { key: 'text', n: 'bigint', at: 'float8' })}
    ),
    known as (
      select * from ${unnest(tx, 't', keys, { key: 'text', upTo: 'bigint', clearAt: 'float8' })}
    ),
    forgotten as (
      delete from throttle_starts s
      using known k
      where s.key = k.key and s.n <= k.up_to
    )
    update throttles t
    set clear_at = to_timestamp(k.clear_at / 1000)
    from known k
    where t.key = k.key`
}

/** Callers wait for the keys that are locked, and each has up to 10,000 starts. */
const KEYS_AT_ONCE = 100
const STARTS_AT_ONCE = 5000

/** Throttles that delay nobody any more. A key that is taken at this moment is left. */
export async function clean(db: Db): Promise<void> {
  while ((await db.begin(cleanPortion)) === 'more') continue
}

/** A key goes when its starts are gone: whoever takes it in between has those that are left forgotten. */
async function cleanPortion(tx: Tx): Promise<'more' | 'done'> {
  const clear = await tx<{ key: string }[]>`
    select key
    from throttles
    where clear_at < now()
    order by clear_at
    limit ${KEYS_AT_ONCE}
    for update skip locked`
  const keys = clear.map(({ key }) => key)
  if (keys.length === 0) return 'done'
  const starts = await tx`
    delete from throttle_starts
    where ctid = any(array(select ctid from throttle_starts where key = any(${keys}) limit ${STARTS_AT_ONCE}))`
  if (starts.count === STARTS_AT_ONCE) return 'more'
  await tx`delete from throttles where key = any(${keys})`
  return keys.length === KEYS_AT_ONCE ? 'more' : 'done'
}
