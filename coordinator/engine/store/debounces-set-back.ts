import type { RunId } from '@windlass/shared/ids.ts'
import type { Db, Tx } from '../../db/client.ts'
import { unnest } from '../../db/unnest.ts'

/** Keys of which calls are merged into a run for a while still, in their order. */
export async function keysThatWait(db: Db, after: string, limit: number): Promise<string[]> {
  const rows = await db<{ key: string }[]>`
    select key
    from debounces
    where key > ${after} and latest_at > now()
    order by key
    limit ${limit}`
  return rows.map(({ key }) => key)
}

/** A run that waits for further calls, with what its descriptor says of that. All times count from now on. */
export interface Waiting {
  key: string
  runId: RunId
  n: number
  holds: string
  waitMs: number
  maxWaitMs: number
  /** When it enters the queue. */
  inMs: number
  /** The latest time at which it may. */
  latestInMs: number
}

/** Keys that nobody else has locked, with their runs; `lock` is to be asked for these. */
export async function lockFreeKeys(tx: Tx, keys: readonly string[]): Promise<Waiting[]> {
  const locked = await tx<{ key: string }[]>`
    select key
    from debounces
    where key = any(${[...keys]})
    order by key
    for update skip locked`
  return waitingOf(
    tx,
    locked.map(({ key }) => key),
  )
}

function waitingOf(tx: Tx, keys: readonly string[]): Promise<Waiting[]> {
  return tx<Waiting[]>`
    select d.key, d.run_id, t.n, t.holds,
           (v.descriptor -> 'debounce' ->> 'waitMs')::float8 as wait_ms,
           (v.descriptor -> 'debounce' ->> 'maxWaitMs')::float8 as max_wait_ms,
           (extract(epoch from t.due_at - now()) * 1000)::float8 as in_ms,
           (extract(epoch from d.latest_at - now()) * 1000)::float8 as latest_in_ms
    from debounces d
    join timers t on t.run_id = d.run_id and t.kind = 'enqueue'
    join runs r on r.id = d.run_id
    join workflow_versions v on v.id = r.version_id
    where d.key = any(${[...keys]}) and t.holds like '%"debounce"%' and v.descriptor ->> 'debounce' is not null`
}

export async function moveLatest(tx: Tx, latest: readonly { key: string; inMs: number }[]): Promise<void> {
  await tx`
    update debounces d
    set latest_at = now() + m.in_ms * interval '1 millisecond'
    from ${unnest(tx, 'm', latest, { key: 'text', inMs: 'float8' })}
    where d.key = m.key`
}
