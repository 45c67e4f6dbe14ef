// Ticks become runs, each once, and what becomes of none is told.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { ops } from '@windlass/shared/ops/index.ts'
import type { Schedule } from '@windlass/shared/model/schedule.ts'
import { anAgent } from '../_kit/agent.ts'
import { aRun, runOf, type TestCoordinator } from '../_kit/coordinator.ts'
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
import { until } from '../_kit/until.ts'
import { aVersion, aWorkflow } from '../_kit/workflow.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE

let c: TestCoordinator

before(async () => {
  c = await aMovableCoordinator()
  await aWorkflow(c, { slug: 'any' })
})
after(() => c.stop())

/** Schedules of other tests are out of the way. */
const over = ({ id }: Schedule) => c.call(ops.schedules.delete, { schedule: id })

test('an agent is told the tick with the run', async () => {
  const agent = await anAgent(c)
  const schedule = await aSchedule(c, { workflow: 'any', rate: '10m' })
  await passTo(c, schedule.nextAt!)
  const [[offer], [run]] = await Promise.all([agent.poll(), firedBy(c, schedule)])
  assert.deepEqual([offer!.run, offer!.trigger], [run!.id, run!.trigger])
  agent.close()
  await over(schedule)
})

test('a tick starts one run, which knows what it is for', async () => {
  const schedule = await aSchedule(c, { workflow: 'any', rate: '6h', input: { a: 1 } })
  assert.equal(schedule.nextAt, schedule.anchorAt! + 6 * HOUR)
  await passTo(c, schedule.nextAt + 1500)
  const [run, ...others] = await firedBy(c, schedule)
  assert.equal(others.length, 0)
  const { late, actor, ...trigger } = run!.trigger
  const at = schedule.nextAt
  assert.deepEqual(trigger, { kind: 'schedule', id: schedule.id, at, catchUp: false, manual: false })
  assert.ok(late! >= 1500 && at + late! <= run!.queuedAt)
  assert.equal(actor, schedule.createdBy)
  assert.deepEqual((await c.call(ops.runs.input, { run: run!.id })).input, { a: 1 })
  const next = await scheduleOf(c, schedule)
  assert.equal(next.nextAt, at + 6 * HOUR)
  assert.deepEqual(next.lastRun, { id: run!.id, status: 'queued', at })
  await over(schedule)
})

test('a retry stands for the same tick', async () => {
  const schedule = await aSchedule(c, { workflow: 'any', rate: '1h' })
  await passTo(c, schedule.nextAt!)
  const [run] = await firedBy(c, schedule)
  await c.call(ops.runs.cancel, { run: run!.id })
  const retry = (await c.call(ops.runs.retry, { run: run!.id })).run
  const { actor: _, ...trigger } = retry.trigger
  const { actor: __, ...before } = run!.trigger
  assert.deepEqual([trigger, retry.retryOf], [before, run!.id])
  assert.equal((await firedBy(c, schedule)).length, 2)
  await over(schedule)
})

test('by hand it starts at once, whatever else is unfinished, and its ticks stay', async () => {
  const schedule = await aSchedule(c, { workflow: 'any', rate: '1h', overlap: 'skip', input: 'given' })
  const first = (await c.call(ops.schedules.run, { schedule: schedule.id })).run
  const second = (await c.call(ops.schedules.run, { schedule: schedule.id, input: 'other' })).run
  assert.deepEqual([first.trigger.manual, first.trigger.kind, first.trigger.id], [true, 'schedule', schedule.id])
  assert.equal((await c.call(ops.runs.input, { run: second.id })).input, 'other')
  assert.equal((await scheduleOf(c, schedule)).nextAt, schedule.nextAt)
  await over(schedule)
})

test('a schedule at a time fires once and has ended', async () => {
  const at = (await nowOf(c)) + HOUR
  const schedule = await aSchedule(c, { workflow: 'any', at: new Date(at).toISOString() })
  assert.deepEqual([schedule.nextTimes, schedule.words], [[at], `Once, at ${new Date(at).toISOString()}`])
  await passTo(c, at)
  assert.equal((await firedBy(c, schedule)).length, 1)
  const { nextAt, endedAt } = await scheduleOf(c, schedule)
  assert.deepEqual([nextAt, endedAt === null], [null, false])
  assert.equal((await whyOf(c, schedule)).code, 'ENDED')
})

test('what was missed is told once for an outage, and the last tick fires late', async () => {
  const schedule = await aSchedule(c, { workflow: 'any', rate: '10m' })
  const first = schedule.nextAt!
  await passTo(c, first + 45 * MINUTE)
  const fired = await firedBy(c, schedule)
  assert.deepEqual(
    fired.map(({ trigger }) => [trigger.at, trigger.catchUp]),
    [[first + 40 * MINUTE, true]],
  )
  const [missed, ...others] = await ticksOf(c, schedule)
  assert.equal(others.length, 0)
  const { firedAt, message: _, ...fact } = missed!
  const range = { from: first, to: first + 40 * MINUTE, count: 5, caughtUp: 1 }
  assert.deepEqual(fact, { outcome: 'missed', reason: 'MISSED', runId: null, ...range })
  assert.ok(firedAt! >= first + 45 * MINUTE)
  await over(schedule)
})

test('all that was missed fires one per second, and nothing beyond the window', async () => {
  const all = await aSchedule(c, { workflow: 'any', rate: '10m', catchUp: 'all', catchUpWindowMs: 26 * MINUTE })
  const none = await aSchedule(c, { workflow: 'any', rate: '10m', catchUp: 'skip' })
  await passTo(c, all.nextAt! + 45 * MINUTE)
  const runs = await firedBy(c, all)
  assert.deepEqual(
    runs.map(({ trigger, queuedAt }) => [trigger.at! - all.nextAt!, queuedAt - runs[0]!.queuedAt]),
    [20, 30, 40].map((minutes, i) => [minutes * MINUTE, i * 1000]),
  )
  assert.deepEqual(
    (await ticksOf(c, all)).map(({ count, caughtUp }) => [count, caughtUp]),
    [[5, 3]],
  )
  assert.deepEqual(await firedBy(c, none), [])
  assert.equal((await ticksOf(c, none))[0]!.firedAt, null)
  await over(all)
  await over(none)
})

test('overlap: skip waits for the run that is unfinished, and says so; cancel ends it', async () => {
  const skip = await aSchedule(c, { workflow: 'any', rate: '10m', overlap: 'skip' })
  const cancel = await aSchedule(c, { workflow: 'any', rate: '10m', overlap: 'cancel' })
  for (const n of [0, 1, 2]) await passTo(c, cancel.nextAt! + n * 10 * MINUTE)
  const [run, ...none] = await firedBy(c, skip)
  assert.equal(none.length, 0)
  const [met] = await ticksOf(c, skip)
  assert.deepEqual([met!.reason, met!.count, met!.runId], ['OVERLAP', 2, run!.id])
  assert.equal((await whyOf(c, skip)).code, 'OVERLAP')
  await c.call(ops.runs.cancel, { run: run!.id })
  await passTo(c, skip.nextAt! + 30 * MINUTE)
  assert.equal((await firedBy(c, skip)).length, 2)
  const [first, second] = await firedBy(c, cancel)
  for (const { id } of [first!, second!])
    await until('it is cancelled', async () => (await runOf(c, id)).status === 'cancelled')
  assert.equal((await firedBy(c, cancel)).at(-1)!.status, 'queued')
  await over(skip)
  await over(cancel)
})

test('a tick whose run is refused is skipped with the reason, and the loop goes on', async () => {
  const inputSchema = { type: 'object', required: ['a'], properties: { a: { type: 'number' } } }
  const strict = await aWorkflow(c, { slug: 'strict' })
  await c.call(ops.environments.create, { org: c.org, name: 'gone' })
  const ofInput = await aSchedule(c, { workflow: 'strict', rate: '10m', input: { a: 'text' } })
  const ofEnvironment = await aSchedule(c, { workflow: 'any', rate: '10m', environment: 'gone' })
  const healthy = await aSchedule(c, { workflow: 'any', rate: '10m' })
  await aVersion(c, strict, { inputSchema })
  await c.call(ops.environments.delete, { org: c.org, environment: 'gone' })
  for (const n of [0, 1]) await passTo(c, healthy.nextAt! + n * 10 * MINUTE)
  for (const [schedule, reason] of [
    [ofInput, 'INPUT_INVALID'],
    [ofEnvironment, 'ENVIRONMENT_GONE'],
  ] as const) {
    assert.deepEqual(await firedBy(c, schedule), [])
    const [gap, ...more] = await ticksOf(c, schedule)
    assert.deepEqual([gap?.outcome, gap?.reason, gap?.count, more.length], ['skipped', reason, 2, 0])
    assert.equal((await whyOf(c, schedule)).code, reason)
  }
  assert.equal((await firedBy(c, healthy)).length, 2)
  for (const each of [ofInput, ofEnvironment, healthy]) await over(each)
})

test('while it is paused it skips its ticks, and goes on from then', async () => {
  const schedule = await aSchedule(c, { workflow: 'any', rate: '10m' })
  const paused = (await c.call(ops.schedules.update, { schedule: schedule.id, enabled: false })).schedule
  assert.deepEqual([paused.nextAt, paused.enabled, paused.pausedBy], [null, false, schedule.createdBy])
  await passTo(c, schedule.nextAt! + 25 * MINUTE)
  assert.equal((await whyOf(c, schedule)).code, 'PAUSED')
  const range = { from: schedule.nextAt, to: schedule.nextAt! + 20 * MINUTE, count: 3, reason: 'PAUSED' }
  const pick = ({ from, to, count, reason }: Record<string, unknown>) => ({ from, to, count, reason })
  assert.deepEqual((await ticksOf(c, schedule)).map(pick), [range])
  const resumed = (await c.call(ops.schedules.update, { schedule: schedule.id, enabled: true })).schedule
  assert.equal(resumed.nextAt, schedule.nextAt! + 30 * MINUTE)
  assert.deepEqual((await ticksOf(c, schedule)).map(pick), [range])
  await passTo(c, resumed.nextAt)
  assert.deepEqual(
    (await firedBy(c, schedule)).map(({ trigger }) => trigger.at),
    [resumed.nextAt],
  )
  await over(schedule)
})

test('two coordinators and a clock that goes back make one run of a tick', async () => {
  const other = await c.another()
  const schedules = await Promise.all(Array.from({ length: 30 }, () => aSchedule(c, { workflow: 'any', rate: '10m' })))
  const last = Math.max(...schedules.map(({ nextAt }) => nextAt!))
  await Promise.all([passTo(c, last), settled(other)])
  for (const schedule of schedules) assert.equal((await firedBy(c, schedule)).length, 1)
  await passTo(c, last - 5 * MINUTE)
  for (const schedule of schedules) await c.call(ops.schedules.update, { schedule: schedule.id, name: 'edited' })
  await passTo(c, last + MINUTE)
  for (const schedule of schedules) {
    assert.equal((await firedBy(c, schedule)).length, 1)
    assert.equal((await scheduleOf(c, schedule)).nextAt, schedule.nextAt! + 10 * MINUTE)
    await over(schedule)
  }
  await other.stop()
})

test('runs whose number is limited are started too, each to wait for its turn', async () => {
  await aWorkflow(c, { slug: 'limited', descriptor: { concurrency: 1, throttle: { limit: 1, per: '1h' } } })
  const schedule = await aSchedule(c, { workflow: 'limited', rate: '10m' })
  const free = await aSchedule(c, { workflow: 'any', rate: '10m' })
  for (const n of [0, 1]) await passTo(c, free.nextAt! + n * 10 * MINUTE)
  assert.equal((await firedBy(c, schedule)).length, 2)
  assert.equal((await firedBy(c, free)).length, 2)
  await over(schedule)
  await over(free)
})

test('schedules that catch up together start all their runs, in several pieces', async () => {
  const ask = { workflow: 'any', rate: '1m', catchUp: 'all', input: 'x'.repeat(60_000) } as const
  const schedules = await Promise.all(Array.from({ length: 5 }, () => aSchedule(c, ask)))
  await passTo(c, Math.max(...schedules.map(({ nextAt }) => nextAt!)) + 70 * MINUTE)
  // Those of the last hour, without the one of this minute, which is in time.
  for (const schedule of schedules) {
    const [missed] = await ticksOf(c, schedule)
    const { runs } = await c.call(ops.runs.list, { org: c.org, trigger: schedule.id, limit: 100 })
    assert.equal(runs.filter(({ trigger }) => trigger.catchUp).length, missed!.caughtUp)
    assert.ok(missed!.caughtUp >= 58 && missed!.count >= 69)
    await over(schedule)
  }
})

test('a tick that has its run already starts no other one, and holds up nobody', async () => {
  const [taken, free] = [
    await aSchedule(c, { workflow: 'any', rate: '1h' }),
    await aSchedule(c, { workflow: 'any', rate: '1h' }),
  ]
  const run = await aRun(c, { workflow: 'any' })
  await c.db`
    update runs
    set trigger_kind = 'schedule', trigger_id = ${taken.id}, tick = 'due', tick_late = 0,
        tick_at = to_timestamp(${taken.nextAt}::float8 / 1000)
    where id = ${run.id}`
  await passTo(c, free.nextAt!)
  assert.deepEqual(
    (await firedBy(c, taken)).map(({ id }) => id),
    [run.id],
  )
  assert.equal((await scheduleOf(c, taken)).nextAt, taken.nextAt! + HOUR)
  assert.equal((await firedBy(c, free)).length, 1)
  await over(taken)
  await over(free)
})

test('runs are listed by the schedule that has started them', async () => {
  const schedule = await aSchedule(c, { workflow: 'any', rate: '10m' })
  await aRun(c, { workflow: 'any' })
  await passTo(c, schedule.nextAt!)
  assert.equal((await firedBy(c, schedule)).length, 1)
  const { runs } = await c.call(ops.runs.list, { org: c.org, trigger: 'schedule', limit: 1 })
  assert.equal(runs[0]!.trigger.kind, 'schedule')
  await over(schedule)
})
