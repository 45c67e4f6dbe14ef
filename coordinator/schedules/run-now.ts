import type { ScheduleId } from '@windlass/shared/ids.ts'
import type { Run } from '@windlass/shared/model/run.ts'
import type { LongCall } from '../actor.ts'
import type { Db } from '../db/client.ts'
import type { Partitions } from '../db/partitions.ts'
import { prepareRun, starterOf, type TriggerDeps } from '../engine/commit/trigger.ts'
import { startRecorded } from '../runs/start.ts'
import { askOf } from './judged.ts'
import { needSchedule } from './schedules.ts'

/** Starts a run as a tick would, whatever else of the schedule is unfinished. Its ticks stay as they are. */
export async function runSchedule(
  deps: TriggerDeps & { db: Db; partitions: Partitions },
  call: LongCall,
  { id, input }: { id: ScheduleId; input: unknown },
): Promise<Run> {
  const { caller } = call
  const row = await needSchedule(deps, caller, id)
  const given = input === undefined ? row : { ...row, input: JSON.stringify(input) }
  const ask = askOf(given, { kind: 'schedule', id, tick: { how: 'manual', at: row.now, lateMs: 0 } })
  const prepared = await prepareRun(deps, starterOf(call), ask)
  const target = { type: 'schedule', id, name: row.name }
  return startRecorded(deps, caller, prepared, { action: 'schedules.run', target })
}
