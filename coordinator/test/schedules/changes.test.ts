// A change meets ticks that are due, or that come a little later by their jitter.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { ops } from '@windlass/shared/ops/index.ts'
import type { Schedule } from '@windlass/shared/model/schedule.ts'
import type { TestCoordinator } from '../_kit/coordinator.ts'
import { moveClock } from '../_kit/database-clock.ts'
import {
  aMovableCoordinator,
  aSchedule,
  firedBy,
  nowOf,
  passTo,
  scheduleOf,
  settled,
  ticksOf,
  whyOf,
} from '../_kit/schedules.ts'
import { aVersion, aWorkflow } from '../_kit/workflow.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE

let c: TestCoordinator

before(async () => {
  c = await aMovableCoordinator()
  await aWorkflow(c, { slug: 'any' })
})
after(() => c.stop())

const update = async ({ id }: Schedule, change: object): Promise<Schedule> =>
  (await c.call(ops.schedules.update, { schedule: id, ...change })).schedule
const over = ({ id }: Schedule) => c.call(ops.schedules.delete, { schedule: id })
const ticksFired = async (schedule: Schedule) => (await firedBy(c, schedule)).map(({ trigger }) => trigger.at)
const gapsOf = async (schedule: Schedule) =>
  (await ticksOf(c, schedule)).map(({ outcome, reason, from, to, count }) => ({ outcome, reason, from, to, count }))

/** One whose next tick fires minutes later than it comes; and when it fires. */
async function aJittered(ask: { catchUp?: 'all' } = {}): Promise<{ schedule: Schedule; dueAt: number }> {
  for (;;) {
    const schedule = await aSchedule(c, { workflow: 'any', cron: '0 0 * * *', jitterMs: HOUR, ...ask })
    const [row] = await c.db<[{ dueAt: number }]>`
      select floor(extract(epoch from due_at) * 1000)::float8 as due_at from schedules where id = ${schedule.id}`
    if (row.dueAt - schedule.nextAt! > 10 * MINUTE) return { schedule, dueAt: row.dueAt }
    await over(schedule)
  }
}

test('a pause skips a tick whose jitter is not over, and says so', async () => {
  const { schedule, dueAt } = await aJittered()
  const at = schedule.nextAt!
  await passTo(c, at + MINUTE)
  assert.equal((await update(schedule, { enabled: false })).nextAt, null)
  await passTo(c, dueAt + MINUTE)
  assert.deepEqual(await ticksFired(schedule), [])
  const skipped = { outcome: 'skipped', reason: 'PAUSED', from: at, to: at, count: 1 }
  assert.deepEqual(await gapsOf(schedule), [skipped])
  assert.equal((await update(schedule, { enabled: true })).nextAt, at + 24 * HOUR)
  assert.deepEqual(await gapsOf(schedule), [skipped])
  await over(schedule)
})

test('an edit ends the jitter of the tick that has come, and ticks of the new pattern count from then', async () => {
  const { schedule } = await aJittered({ catchUp: 'all' })
  const at = schedule.nextAt!
  await passTo(c, at + 5 * MINUTE)
  await update(schedule, { cron: '* * * * *', jitterMs: 0 })
  await settled(c)
  const { nextAt } = await scheduleOf(c, schedule)
  assert.deepEqual(await ticksFired(schedule), [at])
  assert.ok(nextAt! > at + 5 * MINUTE)
  await passTo(c, nextAt!)
  assert.deepEqual(await ticksFired(schedule), [at, nextAt])
  assert.ok((await gapsOf(schedule)).every(({ count }) => count === 1))
  await over(schedule)
})

test('an edit that leaves its times as they are leaves the jitter too', async () => {
  const { schedule, dueAt } = await aJittered()
  await passTo(c, schedule.nextAt! + MINUTE)
  await update(schedule, { name: 'other' })
  await settled(c)
  assert.deepEqual(await ticksFired(schedule), [])
  await passTo(c, dueAt)
  assert.deepEqual(await ticksFired(schedule), [schedule.nextAt])
  await over(schedule)
})

/** The clock goes on and nobody fires: another holds the row until the change has it. */
async function afterOutage(schedule: Schedule, at: number, change: () => Promise<unknown>): Promise<void> {
  const id = schedule.id
  await c.db`update schedules set due_at = due_at + interval '10 years' where id = ${id}`
  await moveClock(c.db, at - (await nowOf(c)))
  await change()
  await c.db`update schedules set due_at = next_at where id = ${id} and due_at > now()`
  await settled(c)
}

test('a deploy after an outage settles what was missed by the old pattern', async () => {
  const workflow = await aWorkflow(c, { descriptor: { schedules: [{ name: 'one', rate: '1h', catchUp: 'all' }] } })
  const [schedule] = (await c.call(ops.schedules.list, { org: c.org, workflow: workflow.id })).schedules
  const first = schedule!.nextAt!
  await afterOutage(schedule!, first + 2 * HOUR + 5 * MINUTE, async () => {
    const schedules = [{ name: 'one', rate: '1m', catchUp: 'all', catchUpWindow: '7d' }]
    await aVersion(c, workflow, { descriptor: { schedules } })
  })
  const missed = { outcome: 'missed', reason: 'MISSED', from: first, to: first + 2 * HOUR, count: 3 }
  assert.deepEqual(await gapsOf(schedule!), [missed])
  assert.deepEqual(await ticksFired(schedule!), [first + 2 * HOUR])
  assert.ok((await scheduleOf(c, schedule!)).nextAt! > first + 2 * HOUR + 5 * MINUTE)
  await aVersion(c, workflow, { descriptor: { schedules: [] } })
})

test('two changes in a row lose no tick, and start none twice', async () => {
  const schedule = await aSchedule(c, { workflow: 'any', rate: '1h', catchUp: 'all', catchUpWindowMs: 7 * 24 * HOUR })
  const first = schedule.nextAt!
  const hold = () => c.db`update schedules set due_at = due_at + interval '10 years' where id = ${schedule.id}`
  await afterOutage(schedule, first + MINUTE, async () => {
    await update(schedule, { rate: '10m' })
    await hold()
    await moveClock(c.db, 21 * MINUTE)
    await update(schedule, { rate: '30m' })
    await update(schedule, { enabled: false })
    await moveClock(c.db, 2 * HOUR)
  })
  const ticks = await ticksFired(schedule)
  assert.equal(ticks[0], first)
  assert.equal(new Set(ticks).size, ticks.length)
  assert.ok(ticks.slice(0, 3).every((at) => at! <= first + 22 * MINUTE))
  assert.equal((await scheduleOf(c, schedule)).nextAt, null)
  await over(schedule)
})

test('after an outage ticks of a disabled workflow are told once, as its own', async () => {
  const workflow = await aWorkflow(c)
  const ask = { workflow: workflow.slug, rate: '10m' } as const
  const schedules = [await aSchedule(c, ask), await aSchedule(c, { ...ask, catchUp: 'skip' })]
  await c.call(ops.workflows.disable, { org: c.org, workflow: workflow.slug })
  const last = Math.max(...schedules.map(({ nextAt }) => nextAt!))
  await passTo(c, last + 45 * MINUTE)
  for (const schedule of schedules) {
    assert.deepEqual(await ticksFired(schedule), [])
    const range = { from: schedule.nextAt!, to: schedule.nextAt! + 40 * MINUTE, count: 5 }
    assert.deepEqual(await gapsOf(schedule), [{ outcome: 'skipped', reason: 'WORKFLOW_DISABLED', ...range }])
  }
  await assert.rejects(c.call(ops.schedules.run, { schedule: schedules[0]!.id }), /was disabled/)
  for (const schedule of schedules) await over(schedule)
})

test('missed ticks that meet an unfinished run are told once', async () => {
  const schedule = await aSchedule(c, { workflow: 'any', rate: '10m', overlap: 'skip' })
  const first = schedule.nextAt!
  await passTo(c, first)
  await passTo(c, first + 45 * MINUTE)
  const [met, missed, ...others] = await gapsOf(schedule)
  assert.equal(others.length, 0)
  const tick = first + 40 * MINUTE
  assert.deepEqual(met, { outcome: 'skipped', reason: 'OVERLAP', from: tick, to: tick, count: 1 })
  const range = { from: first + 10 * MINUTE, to: first + 30 * MINUTE, count: 3 }
  assert.deepEqual(missed, { outcome: 'missed', reason: 'MISSED', ...range })
  await over(schedule)
})

test('of many ticks that are caught up only those that have their run already start none', async () => {
  const schedule = await aSchedule(c, { workflow: 'any', rate: '10m', catchUp: 'all' })
  const first = schedule.nextAt!
  const taken = first + 20 * MINUTE
  const { run } = await c.call(ops.schedules.run, { schedule: schedule.id })
  await c.db`
    update runs set tick = 'due', tick_at = to_timestamp(${taken}::float8 / 1000), tick_late = 0 where id = ${run.id}`
  await passTo(c, first + 45 * MINUTE)
  assert.deepEqual(
    await ticksFired(schedule),
    [0, 10, 20, 30, 40].map((minutes) => first + minutes * MINUTE),
  )
  const [missed, ...others] = await ticksOf(c, schedule)
  assert.deepEqual([missed!.count, missed!.caughtUp, others.length], [4, 4, 0])
  await over(schedule)
})

test('a time that a deploy moves into the past is recorded as missed', async () => {
  const now = await nowOf(c)
  const at = now + 24 * HOUR
  const workflow = await aWorkflow(c, { descriptor: { schedules: [{ name: 'once', at }] } })
  const [schedule] = (await c.call(ops.schedules.list, { org: c.org, workflow: workflow.id })).schedules
  await aVersion(c, workflow, { descriptor: { schedules: [{ name: 'once', at: now - HOUR }] } })
  const range = { from: now - HOUR, to: now - HOUR, count: 1 }
  assert.deepEqual(await gapsOf(schedule!), [{ outcome: 'missed', reason: 'MISSED', ...range }])
  assert.equal((await whyOf(c, schedule!)).code, 'ENDED')
})

test('what a paused schedule has skipped is told by the rules that it had', async () => {
  const schedule = await aSchedule(c, { workflow: 'any', rate: '10m', anchorAt: await nowOf(c) })
  const first = schedule.nextAt!
  await update(schedule, { enabled: false })
  await passTo(c, first + 25 * MINUTE)
  await update(schedule, { rate: '1m' })
  await passTo(c, first + 27 * MINUTE + 30_000)
  await update(schedule, { name: 'other' })
  // It has no tick before it goes on.
  await update(schedule, { rate: '10h' })
  await passTo(c, first + 28 * MINUTE)
  await update(schedule, { enabled: true })
  const skipped = { outcome: 'skipped', reason: 'PAUSED' }
  const skips = [
    { ...skipped, from: first + 26 * MINUTE, to: first + 27 * MINUTE, count: 2 },
    { ...skipped, from: first, to: first + 20 * MINUTE, count: 3 },
  ]
  assert.deepEqual(await gapsOf(schedule), skips)
  assert.deepEqual(await ticksFired(schedule), [])
  await over(schedule)
})

test('what was skipped in a pause stays told when a deploy changes the schedule, or has it no longer', async () => {
  const descriptor = (rate?: string) => ({ schedules: rate === undefined ? [] : [{ name: 'one', rate }] })
  const workflow = await aWorkflow(c, { descriptor: descriptor('10m') })
  const [schedule] = (await c.call(ops.schedules.list, { org: c.org, workflow: workflow.id })).schedules
  const first = schedule!.nextAt!
  await update(schedule!, { enabled: false })
  await passTo(c, first + 5 * MINUTE)
  await aVersion(c, workflow, { descriptor: descriptor('20m') })
  await passTo(c, first + 15 * MINUTE)
  await aVersion(c, workflow, { descriptor: descriptor() })
  await passTo(c, first + 45 * MINUTE)
  await aVersion(c, workflow, { descriptor: descriptor('20m') })
  const skipped = { outcome: 'skipped', reason: 'PAUSED', count: 1 }
  const second = first + 10 * MINUTE
  assert.deepEqual(await gapsOf(schedule!), [
    { ...skipped, from: second, to: second },
    { ...skipped, from: first, to: first },
  ])
  await aVersion(c, workflow, { descriptor: descriptor() })
})

test('what ticked before its pause is settled once, though it is changed while it rests', async () => {
  const schedule = await aSchedule(c, { workflow: 'any', rate: '1h', catchUp: 'skip' })
  const first = schedule.nextAt!
  await afterOutage(schedule, first + 2 * HOUR + MINUTE, async () => {
    await update(schedule, { enabled: false })
    await c.db`update schedules set due_at = due_at + interval '10 years' where id = ${schedule.id}`
    await moveClock(c.db, 2 * HOUR)
    await update(schedule, { rate: '366d' })
  })
  assert.deepEqual(
    (await gapsOf(schedule)).toSorted((a, b) => a.from - b.from),
    [
      { outcome: 'missed', reason: 'MISSED', from: first, to: first + 2 * HOUR, count: 3 },
      { outcome: 'skipped', reason: 'PAUSED', from: first + 3 * HOUR, to: first + 4 * HOUR, count: 2 },
    ],
  )
  await over(schedule)
})
