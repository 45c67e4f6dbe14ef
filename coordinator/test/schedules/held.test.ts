// Ticks that meet a run whose agent is out of reach: whether it has ended is known there, and nowhere else.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { z } from 'zod'
import type { RunId } from '@windlass/shared/ids.ts'
import type { Schedule } from '@windlass/shared/model/schedule.ts'
import { ops } from '@windlass/shared/ops/index.ts'
import { moment } from '@windlass/shared/test/_kit/until.ts'
import { withoutHeld } from '../../schedules/held.ts'
import { hold } from '../../schedules/store-settle.ts'
import { findAll } from '../../schedules/store.ts'
import { ageLeases, SWEEPING } from '../_kit/ageing.ts'
import { aRunningAgent, end, type Held, placementOf, returned } from '../_kit/agent.ts'
import { anOrg, asOwner, aCoordinatorOfItsOwn, runOf, type TestCoordinator } from '../_kit/coordinator.ts'
import { aSchedule, firedBy, ticksOf, whyOf } from '../_kit/schedules.ts'
import { until, untilPolled } from '../_kit/until.ts'
import { aWorkflow } from '../_kit/workflow.ts'

const SECOND = 1000
const lost = Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' })

let c: TestCoordinator

before(async () => {
  c = await aCoordinatorOfItsOwn(SWEEPING)
})
after(() => c.stop())

interface Met {
  org: TestCoordinator
  schedule: Schedule
  run: RunId
  held: Held
}

type Ask = Partial<z.input<(typeof ops.schedules.create)['input']>> & { concurrency?: number }

/** A schedule with a run at an agent, in an org of its own. */
async function met({ concurrency, ...ask }: Ask): Promise<Met> {
  const org = asOwner(c, await anOrg(c))
  const { slug } = await aWorkflow(org, concurrency === undefined ? {} : { descriptor: { concurrency } })
  const schedule = await aSchedule(org, { rate: '1h', catchUp: 'skip', ...ask, workflow: slug })
  const { run } = await org.call(ops.schedules.run, { schedule: schedule.id })
  const held = await aRunningAgent(org)
  assert.equal(held.offer.run, run.id)
  return { org, schedule, run: run.id, held }
}

/** As if its agent was heard so long ago, and had connected long before. */
const heard = ({ held }: Pick<Met, 'held'>, seconds: number) => c.db`
  update runners
  set last_heartbeat_at = now() - ${seconds} * interval '1 second', connected_at = now() - interval '1 hour'
  where id = ${held.agent.id}`

/** Its next tick comes now, or came so long ago; and has waited since, if that is said. */
async function tick(
  { schedule }: Pick<Met, 'schedule'>,
  { agoMs = 0, heldMs }: { agoMs?: number; heldMs?: number } = {},
) {
  await c.db`
    update schedules
    set
      next_at = now() - ${agoMs}::float8 * interval '1 millisecond',
      due_at = now() - ${heldMs === undefined ? agoMs : 0}::float8 * interval '1 millisecond',
      held_since = now() - ${heldMs ?? null}::float8 * interval '1 millisecond'
    where id = ${schedule.id}`
  c.deps.scheduleTimers.expect(0)
}

/** Runs of its ticks. */
const firedBesides = async ({ org, schedule, run }: Met) =>
  (await firedBy(org, schedule)).filter(({ id }) => id !== run)

const waiting = ({ schedule }: Met) => moment('schedules.held', (facts) => facts.schedules.includes(schedule.id))
const decided = ({ schedule }: Met) => moment('schedules.settled', (facts) => facts.schedules.includes(schedule.id))

/** The agent is out of reach, and the tick waits for it. */
async function waits(is: Met): Promise<void> {
  await heard(is, 20)
  const isWaiting = waiting(is)
  await tick(is)
  await isWaiting
}

/** The agent connects again, and says that the run had ended. */
async function comesBack({ held: { agent, link, offer } }: Met): Promise<void> {
  link.close()
  const again = await agent.connect([placementOf(offer)])
  await again.report(offer, 2, end(returned('done')))
}

const heldSince = async ({ schedule }: Met) => {
  const [row] = await c.db<[{ heldSince: Date | null; dueAt: Date | null }]>`
    select held_since, due_at from schedules where id = ${schedule.id}`
  return row
}

const gaps = async ({ org, schedule }: Met) =>
  (await ticksOf(org, schedule)).map(({ reason, count, message, runId }) => ({ reason, count, message, runId }))

for (const concurrency of [undefined, 5])
  for (const overlap of ['skip', 'cancel'] as const)
    test(`${overlap}, concurrency ${concurrency}: a run that ended meanwhile is in no tick's way`, async () => {
      const is = await met({ overlap, concurrency })
      await waits(is)
      const why = await whyOf(is.org, is.schedule)
      assert.match(why.message, /waits: a run of it is unfinished, and its agent is out of reach/)
      const isDecided = decided(is)
      await comesBack(is)
      await isDecided
      const [next, ...none] = await firedBesides(is)
      assert.deepEqual([next!.trigger.catchUp, none.length], [false, 0])
      assert.equal((await runOf(is.org, is.run)).status, 'completed')
      assert.deepEqual(await gaps(is), [])
      assert.deepEqual(
        [(await heldSince(is)).heldSince, (await whyOf(is.org, is.schedule)).code],
        [null, overlap === 'skip' ? 'OVERLAP' : 'TICKS'],
      )
    })

test('a run whose agent was heard is in the way', async () => {
  const [skip, cancel] = [await met({ overlap: 'skip' }), await met({ overlap: 'cancel' })]
  for (const is of [skip, cancel]) await waits(is)
  const areDecided = [skip, cancel].map(decided)
  // In no doubt for as long as this may take on a busy machine.
  for (const is of [skip, cancel]) await heard(is, -3600)
  await Promise.all(areDecided)
  const message = `Its run ${skip.run} had not finished.`
  assert.deepEqual(await gaps(skip), [{ reason: 'OVERLAP', count: 1, message, runId: skip.run }])
  await until('it is cancelled', async () => (await runOf(cancel.org, cancel.run)).status === 'cancelling')
})

test('a run whose agent does not come back is in the way once it was taken from it', async () => {
  const is = await met({ overlap: 'skip' })
  await waits(is)
  const isDecided = decided(is)
  await ageLeases(c, is.run)
  await isDecided
  assert.deepEqual(
    (await gaps(is)).map(({ runId }) => runId),
    [is.run],
  )
  assert.equal((await runOf(is.org, is.run)).status, 'queued')
})

test('no tick waits for longer than three minutes', async () => {
  const is = await met({ overlap: 'cancel' })
  await heard(is, 200)
  const isDecided = decided(is)
  await tick(is, { agoMs: 181 * SECOND, heldMs: 181 * SECOND })
  await isDecided
  assert.equal((await firedBesides(is)).length, 1)
  await until('it is cancelled', async () => (await runOf(is.org, is.run)).status === 'cancelling')
})

test('a tick that has waited for minutes is late, and was not missed', async () => {
  const is = await met({ overlap: 'skip' })
  await is.held.link.report(is.held.offer, 2, end(returned('done')))
  const isDecided = decided(is)
  await tick(is, { agoMs: 120 * SECOND, heldMs: 100 * SECOND })
  await isDecided
  const [next] = await firedBesides(is)
  assert.equal(next!.trigger.catchUp, false)
  assert.ok(next!.trigger.late! >= 120 * SECOND)
  assert.deepEqual(await gaps(is), [])
})

test('for what was missed before it waited, `catchUp` decides', async () => {
  const is = await met({ overlap: 'skip' })
  await is.held.link.report(is.held.offer, 2, end(returned('done')))
  const isDecided = decided(is)
  await tick(is, { agoMs: 200 * SECOND, heldMs: 100 * SECOND })
  await isDecided
  assert.equal((await firedBesides(is)).length, 0)
  assert.deepEqual(
    (await gaps(is)).map(({ reason }) => reason),
    ['MISSED'],
  )
})

test('of ticks that waited together one fires, and the others are told so', async () => {
  for (const overlap of ['skip', 'cancel'] as const) {
    const is = await met({ overlap, rate: '1m' })
    await is.held.link.report(is.held.offer, 2, end(returned('done')))
    const isDecided = decided(is)
    // The schedule is as old as its anchor: of its own times none has come.
    await c.db`update schedules set anchor_at = now() - interval '155 seconds' where id = ${is.schedule.id}`
    await tick(is, { agoMs: 95 * SECOND, heldMs: 94 * SECOND })
    await isDecided
    const [next, ...none] = await firedBesides(is)
    assert.equal(none.length, 0)
    const message = `Another tick was due as well, and started ${next!.id}.`
    assert.deepEqual(await gaps(is), [{ reason: 'OVERLAP', count: 1, message, runId: null }])
  }
})

test('a pause skips a tick that waits, an edit leaves it as it was', async () => {
  const [paused, edited] = [await met({ overlap: 'cancel' }), await met({ overlap: 'cancel' })]
  await waits(paused)
  await paused.org.call(ops.schedules.update, { schedule: paused.schedule.id, enabled: false })
  assert.deepEqual(
    (await gaps(paused)).map(({ reason, count }) => [reason, count]),
    [['PAUSED', 1]],
  )
  assert.deepEqual({ ...(await heldSince(paused)) }, { heldSince: null, dueAt: null })
  await paused.org.call(ops.schedules.update, { schedule: paused.schedule.id, enabled: true })
  await waits(edited)
  const isWaiting = waiting(edited)
  await edited.org.call(ops.schedules.update, { schedule: edited.schedule.id, overlap: 'allow' })
  await isWaiting
  const isDecided = decided(edited)
  await comesBack(edited)
  await isDecided
  assert.equal((await runOf(edited.org, edited.run)).status, 'completed')
  assert.equal((await firedBesides(edited)).length, 1)
  await comesBack(paused)
  await untilPolled('it has ended', async () => (await runOf(paused.org, paused.run)).status === 'completed')
  assert.equal((await firedBesides(paused)).length, 0)
})

test('time in which nobody looked is not counted as waiting', async () => {
  const is = await met({ overlap: 'skip' })
  const [row] = await findAll(c.deps.db, [is.schedule.id])
  await c.db.begin(async (tx) => {
    await tx`
      update schedules
      set held_since = now() - interval '130 seconds', due_at = now() - interval '100 seconds'
      where id = ${is.schedule.id}`
    await hold(tx as never, [row!])
    const [{ held, left }] = await tx<[{ held: number; left: number }]>`
      select extract(epoch from now() - held_since)::float8 as held, extract(epoch from due_at - now())::float8 as left
      from schedules
      where id = ${is.schedule.id}`
    assert.equal(held, 30)
    assert.ok(left >= 1 && left <= 5)
    await tx`update schedules set next_at = null, due_at = null where id = ${is.schedule.id}`
  })
})

test('after a start and an outage nobody was heard, and ticks wait for whoever was there before', async () => {
  const is = await met({ overlap: 'skip' })
  await heard(is, 2)
  const rows = await findAll(c.deps.db, [is.schedule.id])
  const startedAgo = (seconds: number) => ({
    ...c.deps,
    grace: { now: () => ({ gapAtMs: 0, sinceMs: seconds * SECOND, leftMs: SECOND }) },
  })
  const { mine, isAnyHeld } = await withoutHeld(startedAgo(1), rows)
  assert.deepEqual([mine, isAnyHeld], [[], true])
  assert.equal((await withoutHeld(startedAgo(600), rows)).mine.length, 1)
})

test('a tick waits while the database has yet to take what agents told in its absence', async (t) => {
  const is = await met({ overlap: 'cancel' })
  await heard(is, 1)
  const deps = { ...c.deps, grace: { now: () => undefined } }
  const look = async () => withoutHeld(deps, await findAll(c.deps.db, [is.schedule.id]))
  const { mock } = t.mock.method(c.deps.lanes.entries, 'run', () => Promise.reject(lost))
  const isTriedAgain = moment('group.retried', ({ name }) => name === 'entries')
  const { link, offer } = is.held
  const reported = link.report(offer, 2, end(returned('done')))
  await isTriedAgain
  assert.deepEqual((await look()).mine, [])
  mock.restore()
  await reported
  const { unfinished } = await untilPolled('the tick is decided', async () => {
    const looked = await look()
    return looked.mine.length === 1 && looked
  })
  assert.deepEqual(unfinished.get(is.schedule.id) ?? [], [])
})
