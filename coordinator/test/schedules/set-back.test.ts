// The clock of the database is ahead for a while, as after a failover to a host with a wrong clock, then right again.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { ops } from '@windlass/shared/ops/index.ts'
import type { ScheduleRow } from '../../schedules/row.ts'
import { putBack, putSchedulesBack } from '../../schedules/set-back.ts'
import type { TestCoordinator } from '../_kit/coordinator.ts'
import { moveClock } from '../_kit/database-clock.ts'
import { aMovableCoordinator, aSchedule, firedBy, nowOf, passTo, scheduleOf, settled } from '../_kit/schedules.ts'
import { until } from '../_kit/until.ts'
import { aWorkflow } from '../_kit/workflow.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE

let c: TestCoordinator

before(async () => {
  // Nobody sweeps but where a test does.
  c = await aMovableCoordinator({ SWEEP_MS: 3_600_000 })
  await aWorkflow(c, { slug: 'any' })
})
after(() => c.stop())

const over = (id: string) => c.call(ops.schedules.delete, { schedule: id })

async function aheadFor(ms: number, act: () => Promise<unknown> = async () => {}): Promise<void> {
  await moveClock(c.db, ms)
  await settled(c)
  await act()
  await moveClock(c.db, -ms)
}

test('a schedule that ticked by a clock that was ahead goes on at its next step, and fires no tick twice', async () => {
  const schedule = await aSchedule(c, { workflow: 'any', rate: '30m' })
  const first = schedule.nextAt!
  await aheadFor(2 * HOUR)
  const [ahead] = await firedBy(c, schedule)
  assert.ok(ahead!.trigger.at! > first)
  assert.ok((await scheduleOf(c, schedule)).nextAt! > first + HOUR)
  assert.equal(await putSchedulesBack(c.deps), 1)
  assert.equal((await scheduleOf(c, schedule)).nextAt, first)
  for (let at = first; at <= ahead!.trigger.at! + 30 * MINUTE; at += 30 * MINUTE) await passTo(c, at)
  const ticks = (await firedBy(c, schedule)).map((run) => (run.trigger.at! - first) / (30 * MINUTE))
  assert.deepEqual(ticks, [0, 1, 2, 3, 4])
  assert.equal(await putSchedulesBack(c.deps), 0)
  await over(schedule.id)
})

test('one that was made while the clock was ahead ticks as well, and a named anchor stays', async () => {
  const ids: string[] = []
  const anchorAt = new Date((await nowOf(c)) + 5 * HOUR).toISOString()
  await aheadFor(2 * HOUR, async () => {
    ids.push((await aSchedule(c, { workflow: 'any', rate: '30m' })).id)
    ids.push((await aSchedule(c, { workflow: 'any', rate: '30m', anchorAt })).id)
    // Defaults of the table do not see the clock of the test.
    await c.db`update schedules set created_at = settled_at where id = any(${ids})`
  })
  assert.equal(await putSchedulesBack(c.deps), 2)
  const now = await nowOf(c)
  const [made, named] = await Promise.all(ids.map((id) => scheduleOf(c, { id: id as never })))
  assert.ok(made!.nextAt! > now && made!.nextAt! <= now + 30 * MINUTE)
  assert.equal(named!.nextAt, new Date(anchorAt).getTime() + 30 * MINUTE)
  await Promise.all(ids.map(over))
})

test('one that is paused meanwhile ticks at its next step once it goes on', async () => {
  const schedule = await aSchedule(c, { workflow: 'any', rate: '30m' })
  await aheadFor(2 * HOUR, () => c.call(ops.schedules.update, { schedule: schedule.id, enabled: false }))
  await putSchedulesBack(c.deps)
  await c.call(ops.schedules.update, { schedule: schedule.id, enabled: true })
  assert.equal((await scheduleOf(c, schedule)).nextAt, schedule.nextAt)
  await over(schedule.id)
})

test('what has come and was put off is due as it was to be; rules that only the wrong clock has seen are gone', () => {
  const now = Date.UTC(2027, 2, 1)
  const rate = { kind: 'rate', rateMs: 10 * MINUTE, anchorAt: now - HOUR } as const
  const state = { timezone: null, jitterMs: 0, stoppedBecause: null, restsBecause: null, endedAt: null }
  const row = { ...rate, ...state, id: 'sch_1', now, endedBecause: null, earlier: [] } as unknown as ScheduleRow
  const late = putBack({ ...row, settledAt: now - 10 * MINUTE, nextAt: now - 1000, dueAt: now + HOUR })
  assert.deepEqual([late.nextAt, late.dueAt], [now - 1000, now])
  const rule = { ...rate, since: now + HOUR, until: now + 2 * HOUR } as unknown as ScheduleRow['earlier'][number]
  const ahead = { ...row, settledAt: now + HOUR, nextAt: now + 70 * MINUTE, dueAt: now + 2 * HOUR, earlier: [rule] }
  const back = putBack(ahead)
  assert.deepEqual([back.settledAt, back.nextAt, back.earlier], [now, now + 10 * MINUTE, []])
})

test('a coordinator whose pulse finds that the clock was set back puts its schedules right', async () => {
  const sweeping = await aMovableCoordinator({ SWEEP_MS: 50 })
  try {
    await aWorkflow(sweeping, { slug: 'any' })
    const schedule = await aSchedule(sweeping, { workflow: 'any', rate: '30m' })
    const pulses = async () =>
      (await sweeping.db<[{ at: number }]>`select extract(epoch from at)::float8 as at from pulse`)[0].at
    const before = await pulses()
    await passTo(sweeping, schedule.nextAt! + HOUR)
    await until('a pulse has seen it', async () => (await pulses()) > before + 3600)
    await moveClock(sweeping.db, -HOUR - 30 * MINUTE)
    await until('it ticks at its next step', async () => {
      return (await scheduleOf(sweeping, schedule)).nextAt === schedule.nextAt
    })
  } finally {
    await sweeping.stop()
  }
})
