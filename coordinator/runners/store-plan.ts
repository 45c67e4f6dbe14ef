import type { OrgId, PoolId, RunId, RunnerId } from '@windlass/shared/ids.ts'
import type { RunStatus } from '@windlass/shared/model/run.ts'
import type { Db } from '../db/client.ts'
import { onlyFilters } from '../db/by-key.ts'
import type { ProcessState } from '../engine/rules/run.ts'
import { online } from './store.ts'
import { held, takesWork } from './store-demand.ts'

export interface HeldRow {
  runId: RunId
  workflow: string
  status: RunStatus
  place: ProcessState | null
  offeredAt: Date
  acceptedAt: Date | null
  /** What this attempt had computed when its process last waited, in milliseconds. */
  activeMs: number
  timeoutMs: number
  graceMs: number
  /** When the time of the whole run is up. */
  wallAt: Date | null
  now: Date
}

/** What the runner has, what is longest there first. */
export function heldOn(db: Db, runnerId: RunnerId, limit: number): Promise<HeldRow[]> {
  return db<HeldRow[]>`
    select p.run_id, w.slug as workflow, r.status, r.place, p.offered_at, p.accepted_at, r.active_ms::float8 as active_ms,
           (v.descriptor ->> 'timeoutMs')::float8 as timeout_ms, (v.descriptor ->> 'cancelGraceMs')::float8 as grace_ms,
           (select t.due_at from timers t where t.run_id = r.id and t.kind = 'wall-timeout') as wall_at, now() as now
    from placements p
    join runs r on r.id = p.run_id
    join workflows w on w.id = r.workflow_id
    join workflow_versions v on v.id = r.version_id
    where p.runner_id = ${runnerId}
    order by p.offered_at, p.run_id
    limit ${limit}`
}

export interface Surroundings {
  epoch: number
  state: string
  online: boolean
  labels: string[]
  deadlineAt: Date | null
  poolId: PoolId
  poolSettings: object
  queuedRuns: number
}

export async function around(db: Db, orgId: OrgId, runnerId: RunnerId): Promise<Surroundings | undefined> {
  const [row] = await db<Surroundings[]>`
    select i.epoch, i.state, ${online(db)} as online, r.labels, i.deadline_at, p.id as pool_id, p.settings as pool_settings,
           (select count(*)::int from run_queue q where q.pool_id = r.pool_id) as queued_runs
    from runners r
    join runner_intake i on i.runner_id = r.id
    join runner_pools p on p.id = r.pool_id
    where r.id = ${runnerId} and ${onlyFilters(db, db`r.org_id = ${orgId}`)} and r.deregistered_at is null`
  return row
}

export interface Other {
  labels: string[]
  capabilities: string[]
}

/** Other runners of the pool that would be given work, if they can do what the pool demands. */
export function others(db: Db, poolId: PoolId, runnerId: RunnerId): Promise<Other[]> {
  return db<Other[]>`
    select r.labels, r.capabilities
    from runners r
    join runner_intake i on i.runner_id = r.id
    cross join lateral (${held(db)}) held
    where r.pool_id = ${poolId} and r.id <> ${runnerId} and r.deregistered_at is null and ${takesWork(db)}`
}
