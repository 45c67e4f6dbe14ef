import type { ScheduleId } from '@windlass/shared/ids.ts'
import type { LongCall } from '../actor.ts'
import type { Db } from '../db/client.ts'
import type { Partitions } from '../db/partitions.ts'
import { prepareRun, starterOf, type TriggerDeps } from '../engine/commit/trigger.ts'
import { claimOf } from '../idempotency/once.ts'
import { startOnce } from '../runs/once.ts'
import { type Started, startRecorded } from '../runs/start.ts'
import { askOf } from './judged.ts'
import { needSchedule } from './schedules.ts'

/** Starts a run as a tick would, whatever else of the schedule is unfinished. Its ticks stay as they are. */
export async function runSchedule(
  deps: TriggerDeps & { db: Db; partitions: Partitions },
  call: LongCall,
  { id, input, key }: { id: ScheduleId; input: unknown; key: string | undefined },
): Promise<Started> {
  const { caller } = call
  const row = await needSchedule(deps, caller, id)
  const { orgId, workflowId: scope } = row
  const request = { kind: 'schedules.run', schedule: id, input }
  const claim = key === undefined ? undefined : await claimOf({ orgId, scope, key, request })
  const given = input === undefined ? row : { ...row, input: JSON.stringify(input) }
  const ask = askOf(given, { kind: 'schedule', id, tick: { how: 'manual', at: row.now, lateMs: 0 } })
  return startOnce(deps, { orgId, claim }, async (take) => {
    const prepared = await prepareRun(deps, starterOf(call), ask)
    const target = { type: 'schedule', id, name: row.name }
    return startRecorded(deps, caller, prepared, { change: { action: 'schedules.run', target }, take })
  })
}
