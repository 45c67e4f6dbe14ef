/** Schedules on a coordinator whose database has a clock that the test moves. */
import type { z } from 'zod'
import { newId } from '@windlass/shared/ids.ts'
import { ops } from '@windlass/shared/ops/index.ts'
import type { Run } from '@windlass/shared/model/run.ts'
import type { Schedule, ScheduleGap, ScheduleWhy } from '@windlass/shared/model/schedule.ts'
import { aCoordinatorOfItsOwn, type Settings, type TestCoordinator } from './coordinator.ts'
import { makeClockMovable, moveClock } from './database-clock.ts'
import { until } from './until.ts'

type Caller = Pick<TestCoordinator, 'call' | 'org'>
type CreateAsk = Omit<z.input<(typeof ops.schedules.create)['input']>, 'org'>

export function aMovableCoordinator(settings: Settings = {}): Promise<TestCoordinator> {
  return aCoordinatorOfItsOwn(settings, { prepare: makeClockMovable })
}

export async function aSchedule(c: Caller, ask: CreateAsk): Promise<Schedule> {
  return (await c.call(ops.schedules.create, { org: c.org, ...ask })).schedule
}

/** So many more that tick like this one; their ids. */
export async function copiesOf(
  { db }: Pick<TestCoordinator, 'db'>,
  { id }: Schedule,
  count: number,
): Promise<string[]> {
  const ids = Array.from({ length: count }, () => newId('sch'))
  await db`
    insert into schedules (id, org_id, workflow_id, source, kind, rate_ms, anchor_at, created_by, settled_at, next_at,
                           due_at)
    select t.id, s.org_id, s.workflow_id, 'api', 'rate', s.rate_ms, s.anchor_at, s.created_by, s.settled_at, s.next_at,
           s.due_at
    from unnest(${ids}::text[]) as t (id)
    cross join schedules s
    where s.id = ${id}`
  return ids
}

export async function scheduleOf(c: Caller, { id }: Pick<Schedule, 'id'>): Promise<Schedule> {
  return (await c.call(ops.schedules.get, { schedule: id })).schedule
}

export async function whyOf(c: Caller, { id }: Pick<Schedule, 'id'>): Promise<ScheduleWhy> {
  return (await c.call(ops.schedules.why, { schedule: id })).why
}

/** The newest first. */
export async function ticksOf(c: Caller, { id }: Pick<Schedule, 'id'>): Promise<ScheduleGap[]> {
  return (await c.call(ops.schedules.ticks, { schedule: id, limit: 100 })).ticks
}

/** Runs of the schedule, in the order of their ticks. */
export async function firedBy(c: Caller, { id }: Pick<Schedule, 'id'>): Promise<Run[]> {
  const { runs } = await c.call(ops.runs.list, { org: c.org, trigger: id, limit: 100 })
  return runs.sort((a, b) => a.trigger.at! - b.trigger.at! || a.createdAt - b.createdAt)
}

/** By the clock of the database. Sessions of the test itself were opened before it could be moved. */
export async function nowOf({ deps }: Pick<TestCoordinator, 'deps'>): Promise<number> {
  const [row] = await deps.db<[{ now: number }]>`select floor(extract(epoch from now()) * 1000)::float8 as now`
  return row.now
}

/** The clock of the database goes on to this time, and all that is due by then is settled. */
export async function passTo(c: Pick<TestCoordinator, 'db' | 'deps'>, at: number): Promise<void> {
  await moveClock(c.db, at - (await nowOf(c)))
  await settled(c)
}

/** Nothing is due any more. */
export async function settled({ deps }: Pick<TestCoordinator, 'deps'>): Promise<void> {
  deps.scheduleTimers.expect(0)
  await until('what is due is settled', async () => {
    const [row] = await deps.db<[{ due: number }]>`select count(*)::int as due from schedules where due_at <= now()`
    return row.due === 0
  })
}
