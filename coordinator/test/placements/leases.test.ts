import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { pause } from '@windlass/shared/time.ts'
import {
  aRunningAgent,
  anAgent,
  end,
  type Held,
  placementOf,
  returned,
  start,
  takeNext,
  type TestAgent,
} from '../_kit/agent.ts'
import { aCoordinator, aRun, HASTY, logOf, runOf, type TestCoordinator, typesOf } from '../_kit/coordinator.ts'
import { assertInStep } from '../_kit/in-step.ts'
import { until } from '../_kit/until.ts'
import { aWorkflow } from '../_kit/workflow.ts'

let c: TestCoordinator
const agents: TestAgent[] = []

before(async () => {
  c = await aCoordinator(HASTY)
  await aWorkflow(c, { slug: 'any' })
  await aWorkflow(c, { slug: 'once', descriptor: { retries: { crash: 0 } } })
})
after(async () => {
  for (const agent of agents) agent.close()
  await c.stop()
})

async function held(workflow = 'any'): Promise<Held> {
  await aRun(c, { workflow })
  const one = await aRunningAgent(c)
  agents.push(one.agent)
  return one
}

/** Heartbeats until the act is done; `n` counts on. */
async function beating(one: Held, during: Promise<unknown>): Promise<number> {
  const over = new AbortController()
  void during.finally(() => over.abort())
  let n = 0
  while (!over.signal.aborted) {
    const beat = await one.link.heartbeat(++n, placementOf(one.offer))
    assert.deepEqual([beat.n, beat.stale, beat.cancel], [n, [], []])
    await pause(50, over.signal)
  }
  return n
}

test('heartbeats keep a run with its agent for longer than a lease', async () => {
  const one = await held()
  const [first] =
    await c.db`select lease_expires_at + interval '0.4 s' as is_well_over from placements where run_id = ${one.offer.run}`
  const isOver = until(
    'the first lease to be over',
    async () => (await c.db`select 1 where now() > ${first!.isWellOver}`).length,
  )
  const beats = await beating(one, isOver)
  assert.ok(beats > 5)
  const run = await runOf(c, one.offer.run)
  assert.deepEqual([run.status, run.attempt], ['running', 1])
  await one.link.report(one.offer, 2, end(returned(1)))
})

test('a run whose lease is over starts again from the top with another agent, as attempt 2', async () => {
  const one = await held()
  const { run: id } = one.offer
  await until('the run to be queued again', async () => (await runOf(c, id)).status === 'queued')
  const log = await logOf(c, id)
  assert.deepEqual(
    log.slice(-2).map((event) => event.type),
    ['run.restarted', 'run.queued'],
  )
  assert.match(log.at(-2)?.data.reason as string, /lease ran out/)

  const other = await anAgent(c)
  agents.push(other)
  const link = await other.connect()
  const again = await takeNext(other, link)
  assert.deepEqual([again.run, again.attempt, again.epoch], [id, 2, 2])
  // The first agent comes back and hears that it has lost the run.
  assert.deepEqual((await one.link.heartbeat(1, placementOf(one.offer))).stale, [placementOf(one.offer)])
  assert.deepEqual(await one.link.report(one.offer, 2, end(returned('late'))), { kind: 'stale' })
  await link.report(again, 2, end(returned('in time')))
  assert.equal((await typesOf(c, id)).filter((type) => type === 'run.completed').length, 1)
})

test('a run that may not be restarted fails when its lease is over', async () => {
  const { offer } = await held('once')
  const run = await until('the end', async () => {
    const run = await runOf(c, offer.run)
    return run.status === 'failed' && run
  })
  assert.equal(run.error?.code, 'RUN_CRASHED')
  assert.match(run.error.message, /lease ran out/)
})

test('a heartbeat renews only what it names', async () => {
  const one = await held()
  await aRun(c, { workflow: 'any' })
  const forgotten = await takeNext(one.agent, one.link)
  const lost = until('the other run to be taken away', async () => (await runOf(c, forgotten.run)).status === 'queued')
  await beating(one, lost)
  assert.equal((await runOf(c, one.offer.run)).status, 'running')
  await one.link.report(one.offer, 2, end(returned(1)))
  await one.link.report(await takeNext(one.agent, one.link), 2, end(returned(1)))
})

test('while there is an amnesty no lease runs out, and offers still do', async () => {
  const calm = await aCoordinator({ ...HASTY, AMNESTY_MS: 60_000 })
  try {
    await aWorkflow(calm, { slug: 'any' })
    await aRun(calm, { workflow: 'any' })
    const { agent, offer } = await aRunningAgent(calm)
    agents.push(agent)
    const { id } = await aRun(calm, { workflow: 'any' })
    await agent.poll()
    // The lease began earlier than the offer, and both are as long as they are in the tests above.
    await until('the offer to run out', async () => (await runOf(calm, id)).status === 'queued')
    await calm.db`update placements set lease_expires_at = now() - interval '1 hour'`
    await agent.poll()
    await until('the second offer to run out', async () => (await typesOf(calm, id)).length === 5)
    const run = await runOf(calm, offer.run)
    assert.deepEqual([run.status, run.attempt], ['running', 1])
  } finally {
    await calm.stop()
  }
})

test('endings and heartbeats of the same runs at once do not stand in each other’s way', async () => {
  const agent = await anAgent(c)
  agents.push(agent)
  const link = await agent.connect()
  for (let round = 0; round < 5; round++) {
    await Promise.all(Array.from({ length: 40 }, () => aRun(c, { workflow: 'any' })))
    const offers = await agent.poll(40)
    await link.accept(...offers)
    const placements = offers.map(placementOf)
    const since = performance.now()
    // In another order than that of the endings: whoever locked row by row would meet the other in the middle.
    const beats = [1, 2, 3].map((n) => link.heartbeat(n, ...placements.toReversed()))
    await Promise.all(offers.map((offer) => link.report(offer, 1, start(), end(returned(1)))))
    await Promise.all(beats)
    // PostgreSQL looks for deadlocks after a second.
    assert.ok(performance.now() - since < 900, 'something waited')
  }
})

test('lists by status and tag find all of these runs', () => assertInStep(c.db))
