/** Schedules on a coordinator whose database has a clock that the test moves. */
import type { z } from 'zod'
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
