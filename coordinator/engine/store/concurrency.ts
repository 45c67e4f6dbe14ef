import type { PoolId, RunId } from '@windlass/shared/ids.ts'
import type { Tx } from '../../db/client.ts'
import { unnest } from '../../db/unnest.ts'

/**
 * Whoever changes who counts in a group holds its lock until his transaction ends; the statements behind it see what those before him
 * have committed. The order of `groups` is the order of the locks.
 */
export function lock(tx: Tx, groups: readonly string[]): PromiseLike<unknown> {
  return tx`
    select pg_advisory_xact_lock(hashtextextended(group_key, 0))
    from unnest(${[...groups]}::text[]) as g (group_key)`
}

/**
 * They count no more, nor wait to be counted. One that was let in after its transaction had begun is in the queue by now. A claim that
 * holds that row waits for the run's, which is ours, and throws it away afterwards: so it is not waited for.
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
      delete from run_queue q
      using in_queue
      where q.run_id = in_queue.run_id
    )
    delete from concurrency_slots where run_id = any(${ids})`
}

export function count(tx: Tx, runs: readonly { id: RunId; group: string }[]): PromiseLike<unknown> {
  return tx`
    insert into concurrency_slots (run_id, group_key)
    select * from ${unnest(tx, 't', runs, { id: 'text', groupKey: ['text', (r) => r.group] })}
    on conflict (run_id) do nothing`
}

/** Those that count already need only their place in the queue. */
export function requeue(tx: Tx, runIds: readonly RunId[]): PromiseLike<unknown> {
  return tx`
    insert into run_queue (run_id, pool_id, priority, needs)
    select r.id, r.pool_id, r.priority, r.needs
    from runs r
    join concurrency_slots s on s.run_id = r.id
    where r.id = any(${[...runIds]})
    order by r.id
    on conflict (run_id) do nothing`
}

/** All others go to the end of the line, and keep their place when they stand in it already. */
export function wait(tx: Tx, runIds: readonly RunId[]): PromiseLike<unknown> {
  return tx`
    insert into concurrency_waiters (run_id, group_key, pool_id, slots, priority, needs)
    select r.id, r.concurrency_group, r.pool_id, (v.descriptor #>> '{concurrency,limit}')::int, r.priority, r.needs
    from runs r
    join workflow_versions v on v.id = r.version_id
    where r.id = any(${[...runIds]}) and not exists (select from concurrency_slots s where s.run_id = r.id)
    order by r.id
    on conflict (run_id) do nothing`
}

/**
 * Lets the first of the line into the queue as long as fewer count than each of them allows: the higher priority first, then who came
 * first. Nobody overtakes one who stands before him. No more are looked at than the most generous of them would let in.
 */
export function admit(tx: Tx, groups: readonly string[]): PromiseLike<{ poolId: PoolId }[]> {
  return tx<{ poolId: PoolId }[]>`
    with lines as (
      select group_key, most, (select count(*)::int from concurrency_slots s where s.group_key = g.group_key) as taken
      from unnest(${[...groups]}::text[]) as g (group_key)
      cross join lateral (
        select max(slots) as most
        from concurrency_waiters w
        where w.group_key = g.group_key
      ) as line
      where most is not null
    ),
    next as (
      select w.run_id, w.group_key, w.pool_id, w.priority, w.needs, w.position,
             bool_and(l.taken + w.place <= w.slots) over (partition by l.group_key order by w.place) as has_room
      from lines l
      cross join lateral (
        select run_id, group_key, pool_id, slots, priority, needs, position,
               row_number() over (order by priority desc, position) as place
        from concurrency_waiters
        where group_key = l.group_key
        order by priority desc, position
        limit greatest(0, l.most - l.taken)
      ) as w
    ),
    left_line as (
      delete from concurrency_waiters w
      using next
      where w.run_id = next.run_id and next.has_room
      returning w.run_id, w.group_key, w.pool_id, w.priority, w.needs, w.position
    ),
    counted as (
      insert into concurrency_slots (run_id, group_key)
      select run_id, group_key from left_line
      on conflict (run_id) do nothing
    ),
    queued as (
      insert into run_queue (run_id, pool_id, priority, needs)
      select run_id, pool_id, priority, needs
      from left_line
      order by priority desc, position
      on conflict (run_id) do nothing
    )
    select pool_id from left_line`
}
