import type { OrgId, PoolId } from '@windlass/shared/ids.ts'
import type { Db, Sql } from '../db/client.ts'
import { labelsAmong } from '../db/labels-among.ts'
import { isMeant, online } from './store.ts'

/** By id or name. Without what else a pool is shown with: counting its queue is dear where it is long. */
export async function poolOf(
  db: Db,
  orgId: OrgId,
  pool: string,
): Promise<{ id: PoolId; name: string; settings: object } | undefined> {
  const [row] = await db<{ id: PoolId; name: string; settings: object }[]>`
    select p.id, p.name, p.settings
    from runner_pools p
    where ${isMeant(db, orgId, pool)} and p.deleted_at is null`
  return row
}

/** Queued runs that need the same of their runner: see `runs.needs` in 0003-runs.sql. */
export interface QueuedRow {
  needs: string
  runs: number
  oldestAt: Date
}

/** By an index: what waits in other pools is not looked at. */
export function queued(db: Db, poolId: PoolId): Promise<QueuedRow[]> {
  return db<QueuedRow[]>`
    select needs, count(*)::int as runs, min(entered_at) as oldest_at
    from run_queue
    where pool_id = ${poolId}
    group by needs
    order by needs`
}

export interface CapacityRow {
  /** Those of its own that were asked for. */
  labels: string[]
  slots: number
  capabilities: string[]
  online: boolean
  /** It would be given work, if it had room and can do what its pool demands. */
  takesWork: boolean
  isDraining: boolean
  executing: number
  /** Slots of what it has and what it was offered; who is parked has none. */
  used: number
}

/** The runner `r` is heard of, nothing is in its way, and it asks for work, or has no room to. */
export const takesWork = (sql: Sql) => sql`
  (${online(sql)} and i.state = 'open' and (i.quarantined_until > now()) is not true and json_array_length(r.unready) = 0
   and (r.last_poll_at > now() - interval '60 seconds' or held.used >= r.slots))`

/** What the runner `r` has, as `held`. */
export const held = (sql: Sql) => sql`
  select count(*) filter (where l.accepted_at is not null and run.place is distinct from 'parked')::int as executing,
         coalesce(sum(l.slots) filter (where l.accepted_at is null or run.place is distinct from 'parked'), 0)::int as used
  from placements l
  join runs run on run.id = l.run_id
  where l.runner_id = r.id`

export function capacity(db: Db, poolId: PoolId, asked: readonly string[]): Promise<CapacityRow[]> {
  return db<CapacityRow[]>`
    select r.slots, r.capabilities, ${online(db)} as online, ${takesWork(db)} is true as takes_work,
           i.state = 'draining' as is_draining, held.executing, held.used,
           ${labelsAmong(db, db`r.labels`, asked)} as labels
    from runners r
    join runner_intake i on i.runner_id = r.id
    cross join lateral (${held(db)}) held
    where r.pool_id = ${poolId} and r.deregistered_at is null`
}
