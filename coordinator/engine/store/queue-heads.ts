import type { PoolId, RunId, RunnerId } from '@windlass/shared/ids.ts'
import { foundBy, onlyFilters } from '../../db/by-key.ts'
import type { Db, Sql } from '../../db/client.ts'
import type { Candidate, QueueHead } from '../../matching/candidate.ts'
import { labelsAmong } from '../../db/labels-among.ts'
import { demands, isAble, isOpen } from './claim.ts'

/** The different needs of what waits in a pool, or those behind `after`; each is found by one step through the index. */
export async function lines(
  db: Db,
  poolId: PoolId,
  of: { most: number; after?: string | undefined; floor?: number },
): Promise<string[]> {
  const { most, after, floor = 0 } = of
  const isNext = after === undefined ? db`true` : db`needs > ${after}`
  const isAbove = db`position >= ${floor}`
  const rows = await db<{ needs: string }[]>`
    with recursive line as (
      (select needs from run_queue where pool_id = ${poolId} and ${isNext} and ${isAbove} order by needs limit 1)
      union all
      select (
        select needs
        from run_queue
        where pool_id = ${poolId} and needs > line.needs and ${isAbove}
        order by needs
        limit 1
      )
      from line
      where line.needs is not null
    )
    select needs from line where needs is not null limit ${most}`
  return rows.map((row) => row.needs)
}

/** The first runs of these lines, in the order in which the pool gives them out. */
export function queueHeads(
  db: Db,
  poolId: PoolId,
  of: { needs: string[]; each: number; oldMs: number; floor?: number },
): Promise<QueueHead[]> {
  return db<QueueHead[]>`
    select q.*
    from unnest(${of.needs}::text[]) as line (needs)
    cross join lateral (
      select w.run_id, w.needs, w.is_resume, w.priority, w.position::float8 as position,
             w.entered_at < now() - ${of.oldMs} * interval '1 millisecond' as is_old
      from run_queue w
      where w.pool_id = ${poolId} and w.needs = line.needs and w.position >= ${of.floor ?? 0}
      -- By the column, not by what is answered under its name: the index has that order.
      order by w.is_resume desc, w.priority desc, w.position
      limit ${of.each}
    ) q
    order by q.is_resume desc, q.priority desc, q.position`
}

/** Those of these runs that still wait in the pool, and for so long, in the order in which it gives them out. */
export function oldAmong(
  db: Db,
  poolId: PoolId,
  of: { runIds: readonly RunId[]; oldMs: number },
): Promise<QueueHead[]> {
  return db<QueueHead[]>`
    select q.run_id, q.needs, q.is_resume, q.priority, q.position::float8 as position, true as is_old
    from unnest(${[...of.runIds]}::text[]) as t (run_id)
    join run_queue q on ${foundBy(db, db`q.run_id`, db`t.run_id`)}
    where ${onlyFilters(db, db`q.pool_id = ${poolId}`)}
      and q.entered_at < now() - ${of.oldMs} * interval '1 millisecond'
    order by q.is_resume desc, q.priority desc, q.position`
}

/** Of the runner `r`: its own and those of its pool `p`. */
const labels = (sql: Sql) => sql`
  r.labels || array(select json_array_elements_text(coalesce(p.settings -> 'labels', '[]')))`

/** What those of these runners carry that may be given work. `free` is not looked up: their polls say it. */
export function candidates(db: Db, poolId: PoolId, runnerIds: readonly RunnerId[]): Promise<Candidate[]> {
  return db<Candidate[]>`
    with ${demands(db, poolId)}
    select r.id as runner_id, r.slots, ${labels(db)} as labels, 0 as free
    from unnest(${[...runnerIds]}::text[]) as t (runner_id)
    join runners r on r.id = t.runner_id
    join runner_intake i on i.runner_id = r.id
    join runner_pools p on p.id = r.pool_id
    cross join demands d
    where ${isOpen(db)} and ${isAble(db)}`
}

/**
 * All runners of a pool that work and may be given more, whether or not they ask for it now, with those of their labels
 * that are asked for: a pool has 20,000 of them at most.
 */
export function workers(db: Db, poolId: PoolId, asked: readonly string[]): Promise<Candidate[]> {
  return db<Candidate[]>`
    with ${demands(db, poolId)}
    select r.id as runner_id, r.slots, r.slots - used.slots as free, ${labelsAmong(db, labels(db), asked)} as labels
    from runners r
    join runner_intake i on i.runner_id = r.id
    join runner_pools p on p.id = r.pool_id
    cross join demands d
    cross join lateral (
      select coalesce(sum(l.slots), 0)::int as slots
      from placements l
      join runs on runs.id = l.run_id
      where l.runner_id = r.id and runs.place is distinct from 'parked'
    ) used
    where r.pool_id = ${poolId} and ${isOpen(db)} and ${isAble(db)}
      and json_array_length(r.unready) = 0
      and greatest(r.last_poll_at, r.last_heartbeat_at) > now() - interval '60 seconds'
      -- One that is full does not ask.
      and (r.last_poll_at > now() - interval '60 seconds' or used.slots > 0)`
}
