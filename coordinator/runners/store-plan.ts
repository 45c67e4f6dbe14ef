import type { OrgId, RunId, RunnerId } from '@windlass/shared/ids.ts'
import type { RunStatus } from '@windlass/shared/model/run.ts'
import type { Db } from '../db/client.ts'
import type { Place } from '../runs/row.ts'
import { held, takesWork } from './store-demand.ts'

export interface LiveRow {
  runId: RunId
  workflow: string
  status: RunStatus
  place: Place | null
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
export function liveOn(db: Db, runnerId: RunnerId, limit: number): Promise<LiveRow[]> {
  return db<LiveRow[]>`
    select p.run_id, w.slug as workflow, r.status, r.place, p.offered_at, p.accepted_at, r.active_ms::float8 as active_ms,
           (v.descriptor ->> 'timeoutMs')::float8 as timeout_ms, (v.descriptor ->> 'cancelGraceMs')::float8 as grace_ms,
           t.due_at as wall_at, now() as now
    from placements p
    join runs r on r.id = p.run_id
    join workflows w on w.id = r.workflow_id
    join workflow_versions v on v.id = r.version_id
    left join timers t on t.run_id = r.id and t.kind = 'wall-timeout'
    where p.runner_id = ${runnerId}
    order by p.offered_at, p.run_id
    limit ${limit}`
}

export interface Surroundings {
  epoch: number
  state: string
  online: boolean
  protocol: number
  deadlineAt: Date | null
  /** Other runners of the pool that would be given work. */
  othersTakeWork: number
  /** Of those, the ones with all labels of this one. */
  alikeTakeWork: number
  queuedRuns: number
}

export async function around(db: Db, orgId: OrgId, runnerId: RunnerId): Promise<Surroundings | undefined> {
  const [row] = await db<Surroundings[]>`
    select i.epoch, i.state, (greatest(me.last_poll_at, me.last_heartbeat_at) > now() - interval '60 seconds') is true as online,
           me.protocol, i.deadline_at, others.take_work as others_take_work, others.alike as alike_take_work,
           (select count(*)::int from run_queue q where q.pool_id = me.pool_id) as queued_runs
    from runners me
    join runner_intake i on i.runner_id = me.id
    cross join lateral (
      select count(*)::int as take_work, (count(*) filter (where r.labels @> me.labels))::int as alike
      from runners r
      join runner_intake i on i.runner_id = r.id
      join runner_pools p on p.id = r.pool_id
      cross join lateral (${held(db)}) held
      where r.pool_id = me.pool_id and r.id <> me.id and r.deregistered_at is null and ${takesWork(db)}
    ) others
    where me.org_id = ${orgId} and me.id = ${runnerId} and me.deregistered_at is null`
  return row
}
