// What of a schedule ends for its next tick: many runs, runs of many schedules, and by which rule.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { ops } from '@windlass/shared/ops/index.ts'
import { onMoment } from '@windlass/shared/probe.ts'
import type { Schedule } from '@windlass/shared/model/schedule.ts'
import type { RunId, ScheduleId } from '@windlass/shared/ids.ts'
import { unfinishedOf } from '../../schedules/store-unfinished.ts'
import { followMark, moveMark } from '../../engine/sweep/mark.ts'
import type { TestCoordinator } from '../_kit/coordinator.ts'
import { moveClock } from '../_kit/database-clock.ts'
import {
  aMovableCoordinator,
  aSchedule,
  copiesOf,
  firedBy,
  nowOf,
  passTo,
  settled,
  ticksOf,
  whyOf,
} from '../_kit/schedules.ts'
import { untilPolled } from '../_kit/until.ts'
import { aWorkflow } from '../_kit/workflow.ts'

const MINUTE = 60_000

let c: TestCoordinator

before(async () => {
  c = await aMovableCoordinator({ LIMIT_IDENTITY_PER_MIN: '0', LIMIT_ORG_PER_MIN: '0' })
  await aWorkflow(c, { slug: 'any' })
})
after(() => c.stop())

const unfinished = async (ids: readonly string[]) => {
  const rows = await c.db<{ id: RunId; schedule: ScheduleId }[]>`
    select id, trigger_id as schedule from runs where trigger_id = any(${[...ids]}) and finished_at is null`
  return rows
}

/** In the order of the runs. */
const endsOf = async (ids: readonly string[]) => {
  const rows = await c.db<{ status: string; reason: string }[]>`
    select r.status, r.cancel_reason as reason
    from unnest(${[...ids]}::text[]) with ordinality as t (id, n)
    join runs r on r.id = t.id
    order by t.n`
  return rows.map((row) => ({ ...row }))
}

/** Turns of the job that ends runs, while something is done. */
async function turnsWhile(act: () => Promise<void>): Promise<number[]> {
  const turns: number[] = []
  const stop = onMoment((moment) => {
    if (moment.name === 'schedules.ended') turns.push(moment.facts.runs.length)
  })
  await act()
  stop()
  return turns
}

test('all that is unfinished ends for the next tick, however many runs that are', async () => {
  const schedule = await aSchedule(c, { workflow: 'any', rate: '10m', overlap: 'cancel' })
  const started = []
  for (let i = 0; i < 130; i++) started.push((await c.call(ops.schedules.run, { schedule: schedule.id })).run.id)
  const middle = started[20]!
  // Those before it are found another way.
  await moveMark(c.db, middle)
  await passTo(c, schedule.nextAt!)
  await untilPolled('one is left', async () => (await unfinished([schedule.id])).length === 1)
  const [left] = await unfinished([schedule.id])
  const reason = `the schedule ${schedule.id} has started ${left!.id} in its place`
  assert.deepEqual(
    await endsOf(started),
    started.map(() => ({ status: 'cancelled', reason })),
  )
  await c.call(ops.schedules.delete, { schedule: schedule.id })
})

test('what many schedules of an org end is one job, in pieces, and each run is told its own reason', async () => {
  const schedule = await aSchedule(c, { workflow: 'any', rate: '10m', overlap: 'cancel' })
  const ids = [schedule.id, ...(await copiesOf(c, schedule, 60))]
  await c.db`update schedules set overlap = 'cancel' where id = any(${ids})`
  await passTo(c, schedule.nextAt!)
  const first = await unfinished(ids)
  assert.equal(first.length, 61)
  const turns = await turnsWhile(async () => {
    await passTo(c, schedule.nextAt! + 10 * MINUTE)
    await untilPolled('the first are ended', async () => {
      const open = new Set((await unfinished(ids)).map(({ id }) => id))
      return first.every(({ id }) => !open.has(id))
    })
  })
  assert.ok(turns.length > 0 && turns.length <= 4, `${turns.length} turns for 61 schedules`)
  const second = new Map((await unfinished(ids)).map(({ id, schedule: of }) => [of, id]))
  const expected = first.map(({ schedule: of }) => `the schedule ${of} has started ${second.get(of)!} in its place`)
  assert.deepEqual(
    (await endsOf(first.map(({ id }) => id))).map(({ reason }) => reason),
    expected,
  )
  for (const id of ids) await c.call(ops.schedules.delete, { schedule: id })
})

test('a tick that came before the rule was changed meets the unfinished run by the rule of then', async () => {
  const schedule = await aSchedule(c, { workflow: 'any', rate: '10m', overlap: 'skip' })
  await passTo(c, schedule.nextAt!)
  await moveClock(c.db, schedule.nextAt! + 10 * MINUTE - (await nowOf(c)))
  await c.call(ops.schedules.update, { schedule: schedule.id, overlap: 'allow' })
  await settled(c)
  assert.equal((await firedBy(c, schedule)).length, 1)
  assert.equal((await ticksOf(c, schedule))[0]?.reason, 'OVERLAP')
  await c.call(ops.schedules.delete, { schedule: schedule.id })
})

for (const overlap of ['skip', 'cancel'] as const)
  test(`of ticks that catch up with overlap: ${overlap} one fires, and the others are told so`, async () => {
    const schedule = await aSchedule(c, { workflow: 'any', rate: '10m', overlap, catchUp: 'all' })
    const first = schedule.nextAt!
    await passTo(c, first + 35 * MINUTE)
    const [run, ...none] = await firedBy(c, schedule)
    assert.deepEqual([run!.trigger.at, none.length], [first + (overlap === 'skip' ? 0 : 30 * MINUTE), 0])
    const [gap] = (await ticksOf(c, schedule)).filter(({ reason }) => reason === 'OVERLAP')
    const message = `Another tick was due as well, and started ${run!.id}.`
    assert.deepEqual([gap!.count, gap!.message, gap!.runId], [3, message, null])
    await c.call(ops.schedules.delete, { schedule: schedule.id })
  })

/** An unfinished run of the schedule, and behind it hundreds that have finished, all before the mark. */
async function anOldRun(schedule: Schedule): Promise<RunId> {
  const run = async () => (await c.call(ops.schedules.run, { schedule: schedule.id })).run.id
  const old = await run()
  const newer = []
  for (let i = 0; i < 210; i++) newer.push(await run())
  await c.db`
    update runs
    set status = 'completed', output = 'null', finished_at = now()
    where id = any(${newer})`
  await c.db`delete from run_queue where run_id = any(${newer})`
  await moveMark(c.db, newer.at(-1)!)
  return old
}

test('an unfinished run is met behind hundreds of newer ones that have finished', async () => {
  const schedule = await aSchedule(c, { workflow: 'any', rate: '10m', overlap: 'skip' })
  const old = await anOldRun(schedule)
  assert.equal((await whyOf(c, schedule)).code, 'OVERLAP')
  await passTo(c, schedule.nextAt!)
  assert.deepEqual(
    (await unfinished([schedule.id])).map(({ id }) => id),
    [old],
  )
  assert.equal((await ticksOf(c, schedule))[0]?.runId, old)
  const { nextAt } = (await c.call(ops.schedules.update, { schedule: schedule.id, overlap: 'cancel' })).schedule
  await passTo(c, nextAt!)
  await untilPolled('it is cancelled', async () => !(await unfinished([schedule.id])).some(({ id }) => id === old))
  assert.equal((await unfinished([schedule.id])).length, 1)
  await c.call(ops.schedules.delete, { schedule: schedule.id })
})

test('unfinished runs of others, and those after the one that is asked for, are not met', async () => {
  const [one, other] = [
    await aSchedule(c, { workflow: 'any', rate: '10m' }),
    await aSchedule(c, { workflow: 'any', rate: '10m' }),
  ]
  const run = async (id: ScheduleId) => (await c.call(ops.schedules.run, { schedule: id })).run.id
  const ids = [await run(one.id), await run(other.id), await run(one.id), await run(one.id), await run(one.id)]
  await moveMark(c.db, ids[3]!)
  const asked = async (more: { most: number; before?: RunId }) =>
    (await unfinishedOf(c.deps.db, [{ id: one.id, ...more }])).get(one.id)
  assert.deepEqual(await asked({ most: 100 }), [ids[0], ids[2], ids[3], ids[4]])
  assert.deepEqual(await asked({ most: 2 }), [ids[3], ids[4]])
  assert.deepEqual(await asked({ most: 1 }), [ids[4]])
  assert.deepEqual(await asked({ most: 2, before: ids[4] }), [ids[2], ids[3]])
  assert.deepEqual(await asked({ most: 2, before: ids[2] }), [ids[0]])
  // As a coordinator of before wrote it.
  await c.db`update runs_remaining set trigger_id = null, pool_id = null where run_id = ${ids[0]!}`
  await followMark(c.deps.db)
  assert.deepEqual(await asked({ most: 2, before: ids[2] }), [ids[0]])
  for (const { id } of [one, other]) await c.call(ops.schedules.delete, { schedule: id })
})
