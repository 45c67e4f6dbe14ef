import type { PoolId, RunId } from '@windlass/shared/ids.ts'
import { foundBy } from '../../db/by-key.ts'
import type { Sql, Tx } from '../../db/client.ts'
import { unnest } from '../../db/unnest.ts'

/**
 * Whoever changes who counts in a group of a workflow holds its lock until his transaction ends; the statements behind
 * it see what those before him have committed. A run may wait in several groups of its workflow, so these share a lock.
 * The order of `workflows` is the order of the locks. Who changes slots without it may wait in a circle for the rows of
 * `concurrency_groups`.
 */
export function lock(tx: Tx, workflows: readonly string[]): PromiseLike<unknown> {
  return tx`
    select pg_advisory_xact_lock(hashtextextended(workflow, 0))
    from unnest(${[...workflows]}::text[]) as w (workflow)`
}

/**
 * They count no more, nor wait to be counted. One that was let in after its transaction had begun is in the queue by
 * now. A claim that holds that row waits for the run's, which is ours, and throws it away afterwards: so it is not
 * waited for.
 */
export function remove(tx: Tx, runIds: readonly RunId[]): PromiseLike<unknown> {
  const ids = [...runIds]
  return tx`
    with left_line as (
      delete from concurrency_waiters where run_id = any(${ids})
    ),
    in_queue as (
      select run_id
      from run_queue
      where run_id = any(${ids}) and not is_resume
      for update skip locked
    ),
    left_queue as (
      delete from run_queue where run_id = any(array(select run_id from in_queue))
    )
    delete from concurrency_slots where run_id = any(${ids})`
}

export function count(tx: Tx, runs: readonly { id: RunId; groups: readonly string[] }[]): PromiseLike<unknown> {
  const rows = runs.flatMap(({ id, groups }) => groups.map((groupKey) => ({ id, groupKey })))
  return tx`
    insert into concurrency_slots (run_id, group_key)
    select * from ${unnest(tx, 't', rows, { id: 'text', groupKey: 'text' })}
    on conflict (run_id, group_key) do nothing`
}

/**
 * Those that count already need only their place in the queue. One that waits has some of its slots, and not all.
 * Asked for each run: see `foundBy`.
 */
export function requeue(tx: Tx, runIds: readonly RunId[]): PromiseLike<unknown> {
  return tx`
    insert into run_queue (run_id, pool_id, priority, needs)
    select r.id, r.pool_id, r.priority, r.needs
    from runs r
    where r.id = any(${[...runIds]})
      and exists (select from concurrency_slots s where s.run_id = r.id offset 0)
      and not exists (select from concurrency_waiters w where w.run_id = r.id offset 0)
    order by r.id
    on conflict (run_id) do nothing`
}

/** Slots of a group that are taken. The database keeps the number: see 0029-concurrency-groups.sql. */
export const takenOf = (sql: Sql, groupKey: ReturnType<Sql>) => sql`
  coalesce((select taken from concurrency_groups counted where counted.group_key = ${groupKey}), 0)`

/** The first of these groups, its limit, and what comes behind it; null when nothing does. */
const firstOf = (sql: Sql, groups: ReturnType<Sql>) => sql`
  select split_part(head, '=', 1) as key, split_part(head, '=', 2)::int as slots,
         nullif(substr(${groups}, length(head) + 2), '') as rest
  from split_part(${groups}, ' ', 1) as head`

/** All others go to the end of the line of their first group, and keep their place when they stand in one already. */
export function wait(tx: Tx, runIds: readonly RunId[]): PromiseLike<unknown> {
  return tx`
    insert into concurrency_waiters (run_id, group_key, pool_id, slots, rest, priority, needs)
    select r.id, first.key, r.pool_id, first.slots, first.rest, r.priority, r.needs
    from runs r
    cross join lateral (${firstOf(tx, tx`r.concurrency_group`)}) as first
    where r.id = any(${[...runIds]})
      and not exists (select from concurrency_slots s where s.run_id = r.id offset 0)
    order by r.id
    on conflict (run_id) do nothing`
}

/** Of one line, in one statement at most: it reads as many, also where the first of them has no room. */
export const MOST_ADMITTED = 256

export interface Admitted {
  poolId: PoolId
  /** The line that it stood in. */
  groupKey: string
  /** Where it waits now, with the slot that it has got here; null: it was the last one, and the run is in the queue. */
  nextGroup: string | null
}

/**
 * Lets the first of the line have a slot as long as fewer are taken than each of them allows: the higher priority
 * first, then who came first. Nobody overtakes one who stands before him. No more are looked at than the most generous
 * of them would let in, and no more than `each` of a line. Who has a slot in all of his groups enters the queue.
 */
export function admit(tx: Tx, groups: readonly string[], each = MOST_ADMITTED): PromiseLike<Admitted[]> {
  return tx<Admitted[]>`
    with lines as materialized (
      select group_key, most, ${takenOf(tx, tx`g.group_key`)} as taken
      from unnest(${[...groups]}::text[]) as g (group_key)
      cross join lateral (
        select max(slots) as most
        from concurrency_waiters w
        where w.group_key = g.group_key
      ) as line
      where most is not null
    ),
    next as (
      select w.run_id, w.group_key, w.rest,
             bool_and(l.taken + w.place <= w.slots) over (partition by l.group_key order by w.place) as has_room
      from lines l
      cross join lateral (
        select run_id, group_key, slots, rest, row_number() over (order by priority desc, position) as place
        from concurrency_waiters
        where group_key = l.group_key
        order by priority desc, position
        limit least(${each}::int, greatest(0, l.most - l.taken))
      ) as w
    ),
    left_line as (
      delete from concurrency_waiters w
      using next
      where ${foundBy(tx, tx`w.run_id`, tx`next.run_id`)} and next.has_room and next.rest is null
      returning w.run_id, next.group_key, w.pool_id, w.priority, w.needs, w.position
    ),
    moved_on as (
      update concurrency_waiters w
      set group_key = first.key, slots = first.slots, rest = first.rest
      from next
      cross join lateral (${firstOf(tx, tx`next.rest`)}) as first
      where ${foundBy(tx, tx`w.run_id`, tx`next.run_id`)} and next.has_room and next.rest is not null
      returning w.run_id, next.group_key, w.pool_id, w.group_key as next_group
    ),
    counted as (
      insert into concurrency_slots (run_id, group_key)
      select run_id, group_key from left_line
      union all
      select run_id, group_key from moved_on
      on conflict (run_id, group_key) do nothing
    ),
    queued as (
      insert into run_queue (run_id, pool_id, priority, needs)
      select run_id, pool_id, priority, needs
      from left_line
      order by priority desc, position
      on conflict (run_id) do nothing
    )
    select pool_id, group_key, null as next_group from left_line
    union all
    select pool_id, group_key, next_group from moved_on`
}
