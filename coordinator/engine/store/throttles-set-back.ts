import type { RunId } from '@windlass/shared/ids.ts'
import type { RunStatus } from '@windlass/shared/model/run.ts'
import { amongIds } from '../../db/by-key.ts'
import type { Db, Tx } from '../../db/client.ts'
import { unnest } from '../../db/unnest.ts'
import type { Start } from './throttles.ts'

/** Throttles that delay somebody, or would, in the order of their keys. */
export async function keysThatDelay(db: Db, after: string, limit: number): Promise<string[]> {
  const rows = await db<{ key: string }[]>`
    select key
    from throttles
    where key > ${after} and clear_at > now()
    order by key
    limit ${limit}`
  return rows.map(({ key }) => key)
}

/** In the order in which `reserve` locks them, which sorts keys that are given. */
export function lock(tx: Tx, keys: readonly string[]): Promise<{ key: string; last: number }[]> {
  return tx<{ key: string; last: number }[]>`
    select key, last::float8 as last
    from throttles
    where key = any(${[...keys]})
    order by key collate "default"
    for update`
}

/** A run that waits for its turn. */
export interface Waiting {
  runId: RunId
  n: number
  holds: string
  /** Milliseconds since the epoch. */
  at: number
}

/** Those of all throttles, the earliest first. Reads all timers: it is for times when a clock was set back. */
export function waiting(tx: Tx): Promise<Waiting[]> {
  return tx<Waiting[]>`
    select run_id, n, holds, (extract(epoch from due_at) * 1000)::float8 as at
    from timers
    where kind = 'enqueue' and holds like '%"isTaken":true%'
    order by due_at, run_id`
}

/** The starts that are kept, in their order. */
export function startsOf(tx: Tx, keys: readonly string[]): Promise<Start[]> {
  return tx<Start[]>`
    select key, n::float8 as n, (extract(epoch from at) * 1000)::float8 as at
    from throttle_starts
    where key = any(${[...keys]})
    order by key, n`
}

/** Locks those of these runs that nobody else has locked. */
export async function lockFree(tx: Tx, ids: readonly RunId[]): Promise<{ id: RunId; status: RunStatus }[]> {
  if (ids.length === 0) return []
  return tx<{ id: RunId; status: RunStatus }[]>`
    select id, status
    from runs
    where ${amongIds(tx, tx`id`, ids)}
    order by id
    for update skip locked`
}

/** Writes when these starts are, and until when each throttle delays somebody. */
export async function move(
  tx: Tx,
  starts: readonly Start[],
  throttles: readonly { key: string; clearAt: number }[],
): Promise<void> {
  await tx`
    with moved as (
      update throttle_starts s
      set at = to_timestamp(m.at / 1000)
      from ${unnest(tx, 'm', starts, { key: 'text', n: 'bigint', at: 'float8' })}
      where s.key = m.key and s.n = m.n
    )
    update throttles t
    set clear_at = to_timestamp(m.clear_at / 1000)
    from ${unnest(tx, 'm', throttles, { key: 'text', clearAt: 'float8' })}
    where t.key = m.key`
}
