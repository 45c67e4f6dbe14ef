import type { RunId } from '@windlass/shared/ids.ts'
import type { Db, Tx } from '../../db/client.ts'
import type { Debounce, NewRun } from './new-runs.ts'

/**
 * The run that calls with this key are merged into: this one where there is none. The lock of the key is held until the
 * transaction ends, so calls with one key come one after the other.
 */
export async function take(tx: Tx, { key, maxWaitMs }: Debounce, runId: RunId): Promise<RunId> {
  const [row] = await tx<[{ runId: RunId }]>`
    insert into debounces (key, run_id, latest_at)
    values (${key}, ${runId}, clock_timestamp() + ${maxWaitMs} * interval '1 millisecond')
    on conflict (key) do update set key = excluded.key
    returning run_id`
  return row.runId
}

/** The run before has begun, or ended: calls are merged into this one from now on. */
export async function replace(tx: Tx, { key, maxWaitMs }: Debounce, runId: RunId): Promise<void> {
  await tx`
    update debounces
    set run_id = ${runId}, latest_at = clock_timestamp() + ${maxWaitMs} * interval '1 millisecond'
    where key = ${key}`
}

/** What a run waits for that is not due yet. To be read under the lock of the run, which whoever does it needs. */
export async function waitOf(tx: Tx, runId: RunId): Promise<{ holds: string | null } | undefined> {
  const [row] = await tx<{ holds: string | null }[]>`
    select holds
    from timers
    where run_id = ${runId} and kind = 'enqueue' and due_at > clock_timestamp()`
  return row
}

/**
 * The run is as the call would have it, and waits for the next one. Answers when it enters the queue, and what time it
 * is, in milliseconds.
 */
export async function merge(
  tx: Tx,
  runId: RunId,
  call: Pick<NewRun, 'input' | 'concurrencyGroup'> & { debounce: Debounce; holds: string | null },
): Promise<{ until: number; now: number }> {
  const { debounce, holds } = call
  const [row] = await tx<[{ until: number; now: number }]>`
    with until as (
      select least(clock_timestamp() + ${debounce.waitMs} * interval '1 millisecond', latest_at) as at
      from debounces
      where key = ${debounce.key}
    ),
    timed as (
      update timers t
      set due_at = case t.kind when 'enqueue' then u.at else t.due_at + (u.at - r.queued_at) end,
          holds = case t.kind when 'enqueue' then ${holds}::text end
      from until u, runs r
      where t.run_id = ${runId} and t.kind in ('enqueue', 'queue-timeout') and r.id = t.run_id
    )
    update runs r
    set input = ${call.input}, concurrency_group = ${call.concurrencyGroup}, queued_at = u.at
    from until u
    where r.id = ${runId}
    returning (extract(epoch from u.at) * 1000)::float8 as until,
              (extract(epoch from clock_timestamp()) * 1000)::float8 as now`
  return row
}

/** Callers wait for the keys that are removed in one statement. */
const PORTION = 1000

/** Keys whose run waits no more. One that is taken at this moment is left. */
export async function clean(db: Db): Promise<void> {
  for (;;) {
    const { count } = await db`
      delete from debounces
      where key = any(array(select key from debounces where latest_at < now() limit ${PORTION} for update skip locked))
        and latest_at < now()`
    if (count < PORTION) return
  }
}
