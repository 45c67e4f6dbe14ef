import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { ApiError } from '@windlass/shared/ops/api-error.ts'
import type { Run } from '@windlass/shared/model/run.ts'
import { ops } from '@windlass/shared/ops/index.ts'
import { anAgent, end, type Link, returned, takeNext, type TestAgent } from '../_kit/agent.ts'
import { aCoordinator, aRun, refusal, runOf, type TestCoordinator, typesOf } from '../_kit/coordinator.ts'
import { asks, evicted, parked, sleeps } from '../_kit/journal.ts'
import { hear } from '../_kit/ageing.ts'
import { assertInStep } from '../_kit/in-step.ts'
import { until } from '../_kit/until.ts'
import { aWorkflow } from '../_kit/workflow.ts'

let c: TestCoordinator
let agent: TestAgent
let link: Link

before(async () => {
  c = await aCoordinator()
  agent = await anAgent(c)
  link = await agent.connect()
})
after(async () => {
  agent.close()
  await c.stop()
})

const HOUR_MS = 3_600_000
/** Waited for, after a poll that is to find nothing yet. */
const DELAY_MS = 1500

/** A workflow whose runs have these times, and a run of it. */
async function aTimed(timeout: object, more: { descriptor?: object; delayMs?: number } = {}): Promise<Run> {
  const { slug } = await aWorkflow(c, { descriptor: { timeout, ...more.descriptor } })
  const { run } = await c.call(ops.runs.trigger, { org: c.org, workflow: slug, delayMs: more.delayMs ?? 0 })
  return run
}

/** When the run's timers are due, in milliseconds from its creation. */
async function timersOf({ id }: Pick<Run, 'id'>): Promise<Record<string, number>> {
  const rows = await c.db<{ kind: string; ms: number }[]>`
    select t.kind, round(extract(epoch from t.due_at - r.created_at) * 1000)::int as ms
    from timers t
    join runs r on r.id = t.run_id
    where t.run_id = ${id}`
  return Object.fromEntries(rows.map(({ kind, ms }) => [kind, ms]))
}

/** Lets a timer come due. */
async function ripen(id: string, kind: string): Promise<void> {
  await hear(c, id)
  await c.db`update timers set due_at = now() where run_id = ${id} and kind = ${kind}`
  c.deps.timers.expect(0)
}

const ended = (id: string) =>
  until(`the end of ${id}`, async () => {
    const run = await runOf(c, id)
    return run.finishedAt !== null && run
  })

test('a delayed run is queued at once and offered when its time has come', async () => {
  const { slug } = await aWorkflow(c)
  const { run } = await c.call(ops.runs.trigger, { org: c.org, workflow: slug, delayMs: DELAY_MS })
  assert.equal(run.status, 'queued')
  assert.deepEqual(await timersOf(run), { enqueue: DELAY_MS })
  assert.equal(run.queuedAt, run.createdAt + DELAY_MS)
  assert.equal((await runOf(c, run.id)).queuedAt, run.queuedAt)
  assert.deepEqual(await agent.poll(1, 0), [])
  const offer = await takeNext(agent, link)
  assert.equal(offer.run, run.id)
  const taken = await runOf(c, run.id)
  assert.ok(taken.queuedAt - taken.createdAt >= DELAY_MS)
  assert.ok(taken.claimedAt! >= taken.queuedAt)
  await link.report(offer, 2, end(returned(1)))
  assert.deepEqual(await timersOf(run), {})
})

test('a delayed run that is cancelled never comes', async () => {
  const { slug } = await aWorkflow(c)
  const { run } = await c.call(ops.runs.trigger, { org: c.org, workflow: slug, delayMs: HOUR_MS })
  assert.equal((await c.call(ops.runs.cancel, { run: run.id })).run.status, 'cancelled')
  assert.deepEqual(await timersOf(run), {})
})

test('a run without limits of time has no timers', async () => {
  assert.deepEqual(await timersOf(await aTimed({ active: '1m' })), {})
  const [offer] = await agent.poll(1)
  await link.accept(offer!)
  await link.report(offer!, 1, end(returned(1)))
})

test('the time in the queue counts from the entry, that of the whole run from its creation', async () => {
  const run = await aTimed({ wall: '2h', queue: '1h' }, { delayMs: 5000 })
  assert.deepEqual(await timersOf(run), { enqueue: 5000, 'queue-timeout': HOUR_MS + 5000, 'wall-timeout': 2 * HOUR_MS })
  await c.call(ops.runs.cancel, { run: run.id })
})

test('a new run that nobody begins in time fails and leaves the queue', async () => {
  const run = await aTimed({ queue: '1h' })
  await ripen(run.id, 'queue-timeout')
  const { status, error } = await ended(run.id)
  assert.deepEqual([status, error?.code, error?.detail], ['failed', 'RUN_TIMED_OUT', { queueTimeoutMs: HOUR_MS }])
  assert.match(error!.message, /entered the queue.*`timeout\.queue` in workflow\.jsonc/)
  assert.deepEqual(await typesOf(c, run.id), ['run.queued', 'run.failed'])
  assert.deepEqual(await agent.poll(1, 0), [])
})

test('a run that waits for room in its group is given up as well, and leaves none behind', async () => {
  const first = await aTimed({ queue: '1h' }, { descriptor: { concurrency: 1 } })
  const second = await aRun(c, { workflow: first.workflow.slug })
  const third = await aRun(c, { workflow: first.workflow.slug })
  await ripen(second.id, 'queue-timeout')
  assert.equal((await ended(second.id)).error?.code, 'RUN_TIMED_OUT')
  await ripen(first.id, 'queue-timeout')
  await ended(first.id)
  const offer = await takeNext(agent, link)
  assert.equal(offer.run, third.id)
  await link.report(offer, 2, end(returned(1)))
})

test('a run that was begun in time is left alone', async () => {
  const run = await aTimed({ queue: '1h' })
  const offer = await takeNext(agent, link)
  await ripen(run.id, 'queue-timeout')
  await until('the timer', async () => !('queue-timeout' in (await timersOf(run))))
  assert.equal((await runOf(c, run.id)).status, 'running')
  await link.report(offer, 2, end({ how: 'killed', signal: 'SIGKILL' }))
  const again = await takeNext(agent, link)
  assert.deepEqual([again.run, again.attempt], [run.id, 2])
  await link.report(again, 2, end(returned(1)))
  assert.equal((await runOf(c, run.id)).status, 'completed')
})

test('a run that waits for its next attempt goes on waiting when its time in the queue is over', async () => {
  const retries = { error: { max: 1, delay: '1h' } }
  const run = await aTimed({ queue: '1h' }, { descriptor: { retries } })
  const offer = await takeNext(agent, link)
  await link.report(offer, 2, end({ how: 'threw', error: { name: 'Error', message: 'no' } }))
  await ripen(run.id, 'queue-timeout')
  await until('the timer', async () => !('queue-timeout' in (await timersOf(run))))
  assert.deepEqual(await agent.poll(1, 0), [])
  await ripen(run.id, 'enqueue')
  const again = await takeNext(agent, link)
  assert.deepEqual([again.run, again.attempt], [run.id, 2])
  await link.report(again, 2, end(returned(1)))
})

test('a run whose whole time is used up fails in the queue', async () => {
  const run = await aTimed({ wall: '1h' })
  await ripen(run.id, 'wall-timeout')
  const { status, error } = await ended(run.id)
  assert.deepEqual([status, error?.code, error?.detail], ['failed', 'RUN_TIMED_OUT', { wallTimeoutMs: HOUR_MS }])
  assert.match(error!.message, /after its creation.*`timeout\.wall` in workflow\.jsonc/)
})

test('a delayed run whose whole time is used up never comes', async () => {
  const run = await aTimed({ wall: '1h' }, { delayMs: 2 * HOUR_MS })
  await ripen(run.id, 'wall-timeout')
  assert.equal((await ended(run.id)).error?.code, 'RUN_TIMED_OUT')
  assert.deepEqual(await timersOf(run), {})
})

test('a run that waits without a process fails at once when its whole time is used up', async () => {
  const run = await aTimed({ wall: '1h' })
  const offer = await takeNext(agent, link)
  await link.report(offer, 2, asks(1), parked('input'), evicted())
  await ripen(run.id, 'wall-timeout')
  const { status, error } = await ended(run.id)
  assert.deepEqual([status, error?.code], ['failed', 'RUN_TIMED_OUT'])
  assert.deepEqual((await typesOf(c, run.id)).slice(-2), ['run.awaiting_input', 'run.failed'])
  assert.deepEqual(await timersOf(run), {})
})

for (const [where, entries] of [
  ['that executes', []],
  ['that is parked', [asks(1), parked('input')]],
] as const)
  test(`a run ${where} is stopped when its whole time is used up, and fails however its process ends`, async () => {
    const run = await aTimed({ wall: '1h' })
    const offer = await takeNext(agent, link)
    if (entries.length > 0) await link.report(offer, 2, ...entries)
    await ripen(run.id, 'wall-timeout')
    const { runs } = await link.next('cancel')
    assert.deepEqual(
      runs.map((order) => [order.run, order.why]),
      [[run.id, 'timed-out']],
    )
    await link.report(offer, 2 + entries.length, end({ how: 'cancelled', forced: false }))
    const { status, error } = await runOf(c, run.id)
    assert.deepEqual([status, error?.code, error?.detail], ['failed', 'RUN_TIMED_OUT', { wallTimeoutMs: HOUR_MS }])
    assert.equal((await typesOf(c, run.id)).includes('run.resumed'), false)
  })

test('what wakes a run that is being stopped does not put off the time by which its agent has to answer', async () => {
  const run = await aTimed({ wall: '1h' })
  const offer = await takeNext(agent, link)
  await link.report(offer, 2, sleeps(1, HOUR_MS), sleeps(2, 2 * HOUR_MS), parked('sleep'))
  await ripen(run.id, 'wall-timeout')
  await link.next('cancel')
  const deadline = () => c.db`
    select (run_at)::text as at, revision from graphile_worker.jobs where key = ${`cancel:${run.id}`}`
  const before = [...(await deadline())]
  assert.equal(before.length, 1)
  await c.db`update timers set due_at = now() where run_id = ${run.id} and n = 1`
  c.deps.timers.expect(0)
  await until('the timer', async () => (await c.db`select from timers where run_id = ${run.id}`).length === 1)
  assert.deepEqual([...(await deadline())], before)
  await link.report(offer, 5, end({ how: 'cancelled', forced: false }))
  assert.equal((await runOf(c, run.id)).error?.code, 'RUN_TIMED_OUT')
})

test('a run that is being stopped since its time is used up takes no answer', async () => {
  const run = await aTimed({ wall: '1h' })
  const offer = await takeNext(agent, link)
  await link.report(offer, 2, asks(1), parked('input'))
  const { inputs } = await c.call(ops.inputs.list, { org: c.org, run: run.id })
  await ripen(run.id, 'wall-timeout')
  await link.next('cancel')
  await assert.rejects(c.call(ops.inputs.respond, { input: inputs[0]!.id, answer: 1 }), (error: ApiError) => {
    refusal('INPUT_CLOSED')(error)
    assert.match(error.message, /its time is used up; its questions take no answer any more/)
    return true
  })
  await link.report(offer, 4, end({ how: 'cancelled', forced: false }))
  const { status, error } = await runOf(c, run.id)
  assert.deepEqual([status, error?.code], ['failed', 'RUN_TIMED_OUT'])
  assert.equal((await c.call(ops.inputs.get, { input: inputs[0]!.id })).input.status, 'closed')
})

test('a run that ends in time leaves no timers', async () => {
  const run = await aTimed({ wall: '1h', queue: '1h' })
  await link.report(await takeNext(agent, link), 2, end(returned(1)))
  assert.equal((await runOf(c, run.id)).status, 'completed')
  assert.deepEqual(await timersOf(run), {})
})

test('lists by status and tag find all of these runs', () => assertInStep(c.db, c.orgId))
