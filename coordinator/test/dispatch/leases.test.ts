import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { newId } from '@windlass/shared/ids.ts'
import { type Moment, onMoment } from '@windlass/shared/probe.ts'
import { ops } from '@windlass/shared/ops/index.ts'
import { moment } from '@windlass/shared/test/_kit/until.ts'
import { pause } from '@windlass/shared/time.ts'
import type { Db } from '../../db/client.ts'
import { commitBeats } from '../../engine/commit/leases.ts'
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
import { ageLeases, SWEEPING } from '../_kit/ageing.ts'
import { aCoordinatorOfItsOwn, aRun, logOf, runOf, type TestCoordinator, typesOf } from '../_kit/coordinator.ts'
import { assertInStep } from '../_kit/in-step.ts'
import { until, untilPolled } from '../_kit/until.ts'
import { aWorkflow } from '../_kit/workflow.ts'

let c: TestCoordinator
const agents: TestAgent[] = []

before(async () => {
  c = await aCoordinatorOfItsOwn(SWEEPING)
  await aWorkflow(c, { slug: 'any' })
  await aWorkflow(c, { slug: 'once', descriptor: { retries: { fence: 0 } } })
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

test('an agent that names thousands of runs that it invented costs no look for each, and keeps its own', async () => {
  const one = await held()
  const other = await held()
  const invented = Array.from({ length: 16_000 }, (_, i): [string, number] => [newId('run'), i])
  const holds = [...invented, placementOf(other.offer), placementOf(one.offer)]
  const looks = await c.db.begin(async (tx) => {
    const scans = () => tx`select idx_scan::int as n from pg_stat_xact_user_tables where relname = 'placements'`
    const [before] = await scans()
    const beat = { runnerId: one.agent.id, holds, leaseMs: 75_000 }
    const [beaten] = await commitBeats({ ...c.deps, db: tx as unknown as Db }, [beat])
    assert.deepEqual(beaten?.stale, [...invented, placementOf(other.offer)])
    const [after] = await scans()
    return after!.n - before!.n
  })
  assert.ok(looks < 10, `${looks} looks`)
  for (const { link, offer } of [one, other]) {
    assert.deepEqual((await link.heartbeat(1, placementOf(offer))).stale, [])
    await link.report(offer, 2, end(returned(1)))
  }
})

test('heartbeats keep a run with its agent for longer than a lease', async () => {
  const one = await held()
  const [first] = await c.db`
    update placements set lease_expires_at = now() + interval '2 s'
    where run_id = ${one.offer.run}
    returning lease_expires_at as at`
  const isOver = untilPolled(
    'the first lease to be over, and swept',
    async () => (await c.db`select from pulse where at > ${first!.at}::timestamptz + interval '0.4 s'`).length,
  )
  const beats = await beating(one, isOver)
  assert.ok(beats > 0)
  const run = await runOf(c, one.offer.run)
  assert.deepEqual([run.status, run.attempt], ['running', 1])
  await one.link.report(one.offer, 2, end(returned(1)))
})

test('a run whose lease is over starts again from the top with another agent, as attempt 2', async () => {
  const one = await held()
  const { run: id } = one.offer
  await ageLeases(c, id)
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
  await ageLeases(c, offer.run)
  const run = await until('the end', async () => {
    const run = await runOf(c, offer.run)
    return run.status === 'failed' && run
  })
  assert.equal(run.error?.code, 'RUN_FENCED')
  assert.match(run.error.message, /lease ran out/)
})

test('a heartbeat renews only what it names', async () => {
  const one = await held()
  await aRun(c, { workflow: 'any' })
  const forgotten = await takeNext(one.agent, one.link)
  await ageLeases(c, forgotten.run)
  const lost = until('the other run to be taken away', async () => (await runOf(c, forgotten.run)).status === 'queued')
  await beating(one, lost)
  assert.equal((await runOf(c, one.offer.run)).status, 'running')
  await one.link.report(one.offer, 2, end(returned(1)))
  await one.link.report(await takeNext(one.agent, one.link), 2, end(returned(1)))
})

async function pulseOf({ db }: TestCoordinator): Promise<{ at: string }> {
  const [pulse] = await db<[{ at: string }]>`select at::text from pulse`
  return pulse
}

test('a coordinator that was away takes no run from an agent that was not told so', async () => {
  const calm = await aCoordinatorOfItsOwn({ ...SWEEPING, LEASE_MS: 60_000, AMNESTY_MS: 1000 })
  try {
    await aWorkflow(calm, { slug: 'any' })
    await aRun(calm, { workflow: 'any' })
    const { agent, offer } = await aRunningAgent(calm)
    agents.push(agent)
    // The same as if it had stood still for an hour and a moment.
    const found = moment('pulse.done', ({ forwardMs }) => forwardMs > 3_600_000)
    const aged = calm.db.begin(async (tx) => {
      await tx`update pulse set at = at - interval '1 hour', gap_at = null`
      await tx`
        update placements
        set lease_expires_at = lease_expires_at - interval '1 hour', renewed_at = renewed_at - interval '1 hour'`
    })
    await Promise.all([found, aged])
    // Its own pulses: a sweep that is announced may be another coordinator's of this process.
    for (let i = 0; i < 4; i++) {
      const { at } = await pulseOf(calm)
      await until('the next pulse', async () => (await pulseOf(calm)).at !== at)
    }
    const run = await runOf(calm, offer.run)
    assert.deepEqual([run.status, run.attempt], ['running', 1])
    const { why } = await calm.call(ops.runs.why, { run: run.id })
    assert.match(why.summary, /Its lease was lengthened by 1 h/)
    const metrics = await (await fetch(`${calm.url}/metrics`)).text()
    assert.match(metrics, /^windlass_lease_gaps_total [1-9]/m)
  } finally {
    await calm.stop()
  }
})

test('endings and heartbeats of the same runs at once do not stand in each other’s way', async () => {
  const agent = await anAgent(c)
  agents.push(agent)
  const link = await agent.connect()
  const retried: Moment[] = []
  const stop = onMoment((each) => each.name === 'group.retried' && retried.push(each))
  for (let round = 0; round < 5; round++) {
    await Promise.all(Array.from({ length: 40 }, () => aRun(c, { workflow: 'any' })))
    const offers = await agent.poll(40)
    await link.accept(...offers)
    const placements = offers.map(placementOf)
    // In another order than that of the endings: whoever locked row by row would meet the other in the middle.
    const beats = [1, 2, 3].map((n) => link.heartbeat(n, ...placements.toReversed()))
    await Promise.all(offers.map((offer) => link.report(offer, 1, start(), end(returned(1)))))
    await Promise.all(beats)
  }
  stop()
  assert.deepEqual(retried, [], 'nothing of it was chosen to end a deadlock')
})

test('lists by status and tag find all of these runs', () => assertInStep(c.db, c.orgId))
