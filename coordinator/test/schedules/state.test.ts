// Schedules of a deleted workflow, of a zone that nobody knows, and after a start with other zone data.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { ops } from '@windlass/shared/ops/index.ts'
import { onMoment } from '@windlass/shared/probe.ts'
import { fireSchedules } from '../../schedules/fire.ts'
import { moveMark } from '../../engine/sweep/mark.ts'
import { cleanSchedules } from '../../schedules/schedules.ts'
import { countOfApi } from '../../schedules/store.ts'
import { renewNextTicks } from '../../schedules/zone-data.ts'
import type { TestCoordinator } from '../_kit/coordinator.ts'
import { moveClock } from '../_kit/database-clock.ts'
import { until } from '../_kit/until.ts'
import {
  aMovableCoordinator,
  aSchedule,
  copiesOf,
  firedBy,
  nowOf,
  passTo,
  scheduleOf,
  settled,
  ticksOf,
  whyOf,
} from '../_kit/schedules.ts'
import { aWorkflow } from '../_kit/workflow.ts'

const MINUTE = 60_000

let c: TestCoordinator

before(async () => {
  c = await aMovableCoordinator()
})
after(() => c.stop())

test('schedules of a deleted workflow rest, and go on when it is restored', async () => {
  const workflow = await aWorkflow(c)
  const which = { org: c.org, workflow: workflow.id }
  const schedule = await aSchedule(c, { workflow: workflow.slug, rate: '10m' })
  const paused = await aSchedule(c, { workflow: workflow.slug, rate: '10m', enabled: false })
  await c.call(ops.workflows.delete, which)
  await passTo(c, schedule.nextAt! + 25 * MINUTE)
  assert.equal((await whyOf(c, schedule)).code, 'WORKFLOW_DELETED')
  await c.call(ops.workflows.restore, which)
  assert.equal((await scheduleOf(c, schedule)).nextAt, schedule.nextAt! + 30 * MINUTE)
  const [gap] = await ticksOf(c, schedule)
  assert.deepEqual([gap!.reason, gap!.count, gap!.from], ['WORKFLOW_DELETED', 3, schedule.nextAt])
  assert.deepEqual(await firedBy(c, schedule), [])
  assert.equal((await whyOf(c, paused)).code, 'PAUSED')
  assert.equal((await scheduleOf(c, paused)).nextAt, null)
})

test('thousands of schedules rest with their workflow, and each says what it has skipped', async () => {
  const workflow = await aWorkflow(c)
  const which = { org: c.org, workflow: workflow.id }
  const schedule = await aSchedule(c, { workflow: workflow.slug, rate: '10m' })
  const ids = [schedule.id, ...(await copiesOf(c, schedule, 1200))]
  await c.call(ops.workflows.delete, which)
  await passTo(c, schedule.nextAt! + 25 * MINUTE)
  await c.call(ops.workflows.restore, which)
  const rows = await c.db<{ scheduleId: string; nextAt: number; count: number }[]>`
    select g.schedule_id, floor(extract(epoch from s.next_at) * 1000)::float8 as next_at, g.count
    from schedules s
    join schedule_gaps g on g.id = s.gap_id
    where s.id = any(${ids})`
  assert.deepEqual(rows.map(({ scheduleId }) => scheduleId).sort(), ids.sort())
  for (const { nextAt, count } of rows) assert.deepEqual([nextAt, count], [schedule.nextAt! + 30 * MINUTE, 3])
  // They are out of the way of other tests.
  await c.call(ops.workflows.delete, which)
})

test('a zone that is not known stops its schedule and no other; known again, it goes on', async () => {
  const workflow = await aWorkflow(c)
  const cron = '0 * * * *'
  const strange = await aSchedule(c, { workflow: workflow.slug, cron, timezone: 'Europe/Zurich' })
  const plain = await aSchedule(c, { workflow: workflow.slug, cron, timezone: 'UTC' })
  await c.db`update schedules set timezone = 'Europe/Atlantis' where id = ${strange.id}`
  // Another coordinator may know the zone: one that does not shows what is stored.
  const { schedules } = await c.call(ops.schedules.list, { org: c.org, workflow: workflow.id })
  assert.deepEqual(
    schedules.map(({ nextTimes }) => nextTimes.length),
    [5, 1],
  )
  await passTo(c, plain.nextAt!)
  assert.equal((await firedBy(c, plain)).length, 1)
  assert.deepEqual(await firedBy(c, strange), [])
  const why = await whyOf(c, strange)
  assert.deepEqual([why.code, why.nextAt], ['ZONE_UNKNOWN', null])
  assert.match(why.message, /Europe\/Atlantis/)
  await passTo(c, plain.nextAt! + 150 * MINUTE)
  const range = { reason: 'ZONE_UNKNOWN', from: plain.nextAt!, to: plain.nextAt! + 120 * MINUTE, count: 3 }
  const pick = ({ reason, from, to, count }: (typeof ticks)[number]) => ({ reason, from, to, count })
  const ticks = await ticksOf(c, strange)
  assert.deepEqual(ticks.map(pick), [range])
  await c.db`update schedules set timezone = 'Europe/Zurich' where id = ${strange.id}`
  await renewNextTicks(c.deps, '2099z')
  assert.equal((await whyOf(c, strange)).code, 'TICKS')
  assert.deepEqual((await ticksOf(c, strange)).map(pick), [range])
  assert.equal((await scheduleOf(c, strange)).nextAt, plain.nextAt! + 180 * MINUTE)
})

test('what a stopped schedule has skipped is told by the pattern that it had', async () => {
  const { slug } = await aWorkflow(c)
  const strange = await aSchedule(c, { workflow: slug, cron: '*/10 * * * *' })
  await c.db`update schedules set timezone = 'Europe/Atlantis' where id = ${strange.id}`
  await passTo(c, strange.nextAt! + 25 * MINUTE)
  await c.call(ops.schedules.update, { schedule: strange.id, cron: '0 0 1 1 *' })
  assert.equal((await whyOf(c, strange)).code, 'ZONE_UNKNOWN')
  const skips = (await ticksOf(c, strange)).map(({ reason, from, count }) => ({ reason, from, count }))
  assert.deepEqual(skips, [{ reason: 'ZONE_UNKNOWN', from: strange.nextAt, count: 3 }])
  await c.call(ops.schedules.delete, { schedule: strange.id })
})

test('after a start with other zone data the next ticks are found anew, once', async () => {
  const workflow = await aWorkflow(c)
  const schedule = await aSchedule(c, { workflow: workflow.slug, cron: '30 4 * * *', timezone: 'America/Vancouver' })
  const wrong = schedule.nextAt! + 60 * MINUTE
  const shift = () => c.db`
    update schedules
    set next_at = to_timestamp(${wrong}::float8 / 1000), due_at = to_timestamp(${wrong}::float8 / 1000)
    where id = ${schedule.id}`
  await shift()
  assert.equal(await renewNextTicks(c.deps, '2100a'), 1)
  assert.equal((await scheduleOf(c, schedule)).nextAt, schedule.nextAt)
  await shift()
  assert.equal(await renewNextTicks(c.deps, '2100a'), 0)
  assert.equal((await scheduleOf(c, schedule)).nextAt, wrong)
})

test('what somebody else holds is looked at again after a pause', async () => {
  const workflow = await aWorkflow(c)
  const schedule = await aSchedule(c, { workflow: workflow.slug, rate: '10m' })
  await c.db.begin(async (tx) => {
    await tx`select 1 from schedules where id = ${schedule.id} for update`
    await moveClock(c.db, schedule.nextAt! - (await nowOf(c)))
    assert.equal(await fireSchedules(c.deps), 100)
  })
  await settled(c)
  assert.equal((await firedBy(c, schedule)).length, 1)
})

test('a pass ends between two pieces when it is to stop, and what is left is for whoever looks next', async () => {
  const workflow = await aWorkflow(c)
  const schedule = await aSchedule(c, { workflow: workflow.slug, rate: '10m' })
  const ids = await copiesOf(c, schedule, 250)
  const fired = async () => {
    const rows = await c.db<{ id: string }[]>`
      select trigger_id as id from runs where trigger_id = any(${[schedule.id, ...ids]})`
    return rows.map(({ id }) => id)
  }
  const stopping = new AbortController()
  const stopListening = onMoment(({ name }) => name === 'schedules.settled' && stopping.abort())
  await moveClock(c.db, schedule.nextAt! - (await nowOf(c)))
  assert.equal(await fireSchedules(c.deps, stopping.signal), null)
  stopListening()
  const before = await fired()
  assert.ok(before.length > 0 && before.length <= 100, `${before.length} have fired`)
  await settled(c)
  assert.deepEqual((await fired()).sort(), [schedule.id, ...ids].sort())
})

test('a run that has been unfinished for long is met, too', async () => {
  const workflow = await aWorkflow(c)
  const schedule = await aSchedule(c, { workflow: workflow.slug, rate: '10m', overlap: 'skip' })
  await passTo(c, schedule.nextAt!)
  const [run] = await firedBy(c, schedule)
  await moveMark(c.db, run!.id)
  await passTo(c, schedule.nextAt! + 10 * MINUTE)
  assert.equal((await ticksOf(c, schedule))[0]!.runId, run!.id)
})

test('a schedule that was deleted is removed after a month, and one that has ended is not counted', async () => {
  const workflow = await aWorkflow(c)
  const [old, young] = [
    await aSchedule(c, { workflow: workflow.slug, rate: '10m', catchUp: 'skip' }),
    await aSchedule(c, { workflow: workflow.slug, rate: '10m', catchUp: 'skip' }),
  ]
  await passTo(c, young.nextAt! + 5 * MINUTE)
  const before = await countOfApi(c.deps.db, c.orgId)
  await c.db`update schedules set ended_at = now(), ended_because = 'over' where id = ${old.id}`
  assert.equal(await countOfApi(c.deps.db, c.orgId), before - 1)
  for (const { id } of [old, young]) await c.call(ops.schedules.delete, { schedule: id })
  await c.deps.db`update schedules set deleted_at = now() - interval '31 days' where id = ${old.id}`
  await cleanSchedules(c.deps)
  const left = await c.db`select id from schedules where id in (${old.id}, ${young.id})`
  assert.deepEqual(
    left.map(({ id }) => id),
    [young.id],
  )
  const gaps = await c.db`select distinct schedule_id from schedule_gaps where schedule_id in (${old.id}, ${young.id})`
  assert.equal(gaps.length, 1)
})

test('the release of the zone data is told', async () => {
  assert.equal((await c.call(ops.service.health, {})).tz, process.versions.tz)
})

// Where an org had more due than a pass decides, those with the lowest ids won each time: 38 of 80 never fired.
test('the most overdue of an org is decided first', async () => {
  const { slug } = await aWorkflow(c)
  const ids: string[] = []
  for (let n = 0; n < 3; n++) ids.push((await aSchedule(c, { workflow: slug, rate: '1h' })).id)
  const due = async (id: string, inMs: number) => {
    const at = (await nowOf(c)) + inMs
    await c.db`update schedules set due_at = to_timestamp(${at / 1000}::float8) where id = ${id}`
  }
  // The one that was made last is due first.
  for (const [n, id] of ids.entries()) await due(id, (60 - n) * MINUTE)
  const first: string[] = []
  const stop = onMoment((moment) => {
    if (moment.name === 'schedules.settled') first.push(...moment.facts.schedules)
  })
  await moveClock(c.db, 61 * MINUTE)
  c.deps.scheduleTimers.expect(0)
  await until('all have fired', () => ids.every((id) => first.includes(id)))
  stop()
  assert.deepEqual(
    first.filter((id) => ids.includes(id)),
    ids.toReversed(),
  )
})

test('why tells of a tick that is late', async () => {
  const { slug } = await aWorkflow(c)
  const late = await aSchedule(c, { workflow: slug, rate: '1h' })
  const now = await nowOf(c)
  // It is looked at later.
  await c.db`
    update schedules
    set next_at = to_timestamp(${(now - 10 * MINUTE) / 1000}::float8),
        due_at = to_timestamp(${(now + 600 * MINUTE) / 1000}::float8)
    where id = ${late.id}`
  const { code, message } = await whyOf(c, late)
  assert.equal(code, 'TICKS')
  assert.match(message, /^It starts runs, but its tick of \S+ is \d{3} s late/)
})
