import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { Run } from '@windlass/shared/model/run.ts'
import { ops } from '@windlass/shared/ops/index.ts'
import type { Offer } from '@windlass/shared/wire/agent.ts'
import { commitTriggers, prepareRun } from '../../../engine/commit/trigger.ts'
import { ageTimers } from '../../_kit/ageing.ts'
import { noCredential } from '../../../stay.ts'
import { PATIENT_MS, anAgent, end, type Link, returned, start, takeNext, type TestAgent } from '../../_kit/agent.ts'
import { anOrg, aCoordinator, aRun, runOf, type TestCoordinator } from '../../_kit/coordinator.ts'
import { calls, evicted, goesOn, parked, sleeps } from '../../_kit/journal.ts'
import { aVersion, aWorkflow, type TestWorkflow } from '../../_kit/workflow.ts'

let c: TestCoordinator

before(async () => {
  c = await aCoordinator()
})
after(() => c.stop())

interface Scene {
  workflow: TestWorkflow
  pool: string
  agent: TestAgent
  link: Link
}

let scenes = 0

/** A workflow with a limit in a pool of its own, and an agent there. */
async function aLimited(concurrency: unknown): Promise<Scene> {
  const pool = `pool-${++scenes}`
  const { runnerPool } = await c.call(ops.pools.create, { org: c.org, name: pool })
  const workflow = await aWorkflow(c, { descriptor: { pool, concurrency } })
  const agent = await anAgent(c, { pool: runnerPool.id })
  return { workflow, pool, agent, link: await agent.connect() }
}

/** Runs that wait for room, and those that have come past. */
async function sides(ids: string[]) {
  const rows = await c.db<{ id: string; side: string }[]>`
    select run_id as id, 'waits' as side from concurrency_waiters where run_id = any(${ids})
    union all
    select run_id, 'counts' from concurrency_slots where run_id = any(${ids})
    union all
    select run_id, 'queued' from run_queue where run_id = any(${ids})`
  const of = (side: string) => rows.filter((row) => row.side === side).map((row) => ids.indexOf(row.id))
  const sorted = (numbers: number[]) => numbers.sort((a, b) => a - b)
  return { waits: sorted(of('waits')), counts: sorted(of('counts')), queued: sorted(of('queued')) }
}

async function several(n: number, workflow: TestWorkflow, more: object = {}): Promise<Run[]> {
  const runs: Run[] = []
  for (let i = 0; i < n; i++) runs.push(await aRun(c, { workflow: workflow.slug, ...more }))
  return runs
}

const idsOf = (runs: { id: string }[]) => runs.map((run) => run.id)
const finish = (link: Link, offer: Offer, first = 2) => link.report(offer, first, end(returned(1)))
const none = (agent: TestAgent) => agent.poll(1, 0).then((offers) => assert.deepEqual(offers, []))

test('with two hundred triggers at once on two coordinators no more runs are under way than the limit', async () => {
  const { workflow, agent, link } = await aLimited(5)
  const other = await c.another()
  const asked = Array.from({ length: 200 }, (_, i) => aRun(i % 2 ? c : other, { workflow: workflow.slug, input: i }))
  const ids = idsOf(await Promise.all(asked))
  for (let done = 0; done < ids.length;) {
    const offers = await agent.poll(7, PATIENT_MS)
    assert.ok(offers.length > 0 && offers.length <= 5, `${offers.length} offers after ${done} ends`)
    const { counts, queued, waits } = await sides(ids)
    assert.ok(counts.length <= 5, `${counts.length} count`)
    assert.equal(counts.length + waits.length + done, 200)
    assert.equal(queued.length + offers.length, counts.length)
    await link.accept(...offers)
    for (const offer of offers) await link.report(offer, 1, start(), end(returned(1)))
    done += offers.length
  }
  for (const id of ids) assert.equal((await runOf(c, id)).status, 'completed')
  assert.deepEqual(await sides(ids), { waits: [], counts: [], queued: [] })
})

test('while a group of one org is locked, limited runs of others are triggered', async () => {
  const { workflow } = await aLimited(1)
  const other = await anOrg(c)
  const theirs = await aWorkflow(c, { orgId: other.id, descriptor: { concurrency: 1 } })
  const released = Promise.withResolvers<void>()
  const locked = Promise.withResolvers<void>()
  const holder = c.db.begin(async (tx) => {
    await tx`select pg_advisory_xact_lock(hashtextextended(${workflow.id}, 0))`
    locked.resolve()
    await released.promise
  })
  await locked.promise
  const waiting = several(3, workflow)
  const { slug, apiKey } = other
  await c.call(ops.runs.trigger, { org: slug, workflow: theirs.slug }, { apiKey })
  const [{ count }] = await c.db<[{ count: number }]>`
    select count(*)::int as count from runs where workflow_id = ${workflow.id}`
  assert.equal(count, 0, 'those of the group wait for its lock')
  released.resolve()
  await holder
  assert.deepEqual((await sides(idsOf(await waiting))).counts, [0])
})

test('the higher priority comes first, and among equals who came first', async () => {
  const { workflow, agent, link } = await aLimited(1)
  const { slug } = workflow
  const ids: string[] = []
  for (const priority of [0, 0, 5, -5, 5, 0]) ids.push((await aRun(c, { workflow: slug, priority })).id)
  const order: number[] = []
  while (order.length < ids.length) {
    const offer = await takeNext(agent, link)
    order.push(ids.indexOf(offer.run))
    await finish(link, offer)
  }
  assert.deepEqual(order, [0, 2, 4, 1, 5, 3])
})

test('every ending makes room', async () => {
  const { workflow, agent, link } = await aLimited(1)
  const ids = idsOf(await several(6, workflow))
  const endings = [
    returned(1),
    { how: 'threw', error: { name: 'Error', message: 'no' } },
    { how: 'exited', exitCode: 1 },
  ] as const
  for (const [i, ending] of endings.entries()) {
    assert.deepEqual((await sides(ids)).counts, [i])
    const offer = await takeNext(agent, link)
    assert.equal(offer.run, ids[i])
    await link.report(offer, 2, end(ending))
  }
  // One that is in the queue, and one that waits behind it.
  await c.call(ops.runs.cancel, { run: ids[4]! })
  assert.deepEqual(await sides(ids), { counts: [3], queued: [3], waits: [5] })
  await c.call(ops.runs.cancel, { run: ids[3]! })
  assert.deepEqual(await sides(ids), { counts: [5], queued: [5], waits: [] })
  const offer = await takeNext(agent, link)
  await c.call(ops.runs.cancel, { run: ids[5]! })
  assert.deepEqual((await sides(ids)).counts, [5])
  await link.report(offer, 2, end({ how: 'cancelled', forced: false }))
  assert.deepEqual(await sides(ids), { counts: [], queued: [], waits: [] })
})

test('a run that starts again after a crash keeps its place', async () => {
  const { workflow, agent, link } = await aLimited(1)
  const ids = idsOf(await several(2, workflow))
  const offer = await takeNext(agent, link)
  await link.report(offer, 2, end({ how: 'killed', signal: 'SIGKILL' }))
  assert.deepEqual(await sides(ids), { counts: [0], queued: [0], waits: [1] })
  const again = await takeNext(agent, link)
  assert.deepEqual([again.run, again.attempt], [ids[0], 2])
  await finish(link, again)
  assert.deepEqual((await sides(ids)).counts, [1])
})

test('a run that waits counts no more, and counts again when it goes on, over the limit for a while', async () => {
  const { workflow, agent, link } = await aLimited(1)
  const ids = idsOf(await several(3, workflow))
  const first = await takeNext(agent, link)
  await link.report(first, 2, sleeps(1, 20), parked('sleep'))
  assert.deepEqual(await sides(ids), { counts: [1], queued: [1], waits: [2] })
  const second = await takeNext(agent, link)
  await link.next('wake')
  await link.report(first, 4, goesOn())
  assert.deepEqual((await sides(ids)).counts, [0, 1])
  await finish(link, second)
  // One goes on, and one is allowed: the third waits.
  assert.deepEqual(await sides(ids), { counts: [0], queued: [], waits: [2] })
  await finish(link, first, 5)
  assert.deepEqual((await sides(ids)).counts, [2])
})

test('a run that waits and goes on within one report counts, and one that goes on to call another does not', async () => {
  const { workflow, agent, link } = await aLimited(1)
  const ids = idsOf(await several(2, workflow))
  const first = await takeNext(agent, link)
  await link.report(first, 2, sleeps(1, 1), parked('sleep'), goesOn())
  assert.deepEqual(await sides(ids), { counts: [0], queued: [], waits: [1] })
  await link.report(first, 5, sleeps(2, 1), parked('sleep'), goesOn(), calls(3, workflow.slug))
  assert.deepEqual(await sides(ids), { counts: [1], queued: [1], waits: [] })
})

test('a run that waits without a process counts when it goes on elsewhere', async () => {
  const { workflow, agent, link } = await aLimited(1)
  const ids = idsOf(await several(2, workflow))
  const first = await takeNext(agent, link)
  await link.report(first, 2, sleeps(1, 100), parked('sleep'), evicted())
  const second = await takeNext(agent, link)
  const [again] = await agent.poll(1, PATIENT_MS)
  assert.equal(again?.run, ids[0])
  await link.accept(again!)
  await link.report(again!, 1, goesOn())
  assert.deepEqual((await sides(ids)).counts, [0, 1])
  await finish(link, second)
  await finish(link, again!)
  assert.deepEqual(await sides(ids), { counts: [], queued: [], waits: [] })
})

test('a workflow that calls itself comes to an end with a limit of one', async () => {
  const { workflow, agent, link } = await aLimited(1)
  const depth = 5
  await aRun(c, { workflow: workflow.slug, input: depth })
  const chain: Offer[] = []
  for (let left = depth; left >= 0; left--) {
    const offer = await takeNext(agent, link)
    chain.push(offer)
    // It stays hot: the open call alone makes room.
    if (left > 0) await link.report(offer, 2, calls(1, workflow.slug, left - 1))
  }
  await none(agent)
  for (const [i, offer] of chain.toReversed().entries()) await finish(link, offer, i === 0 ? 2 : 3)
  for (const offer of chain) assert.equal((await runOf(c, offer.run)).status, 'completed')
})

test('runs are counted apart by the field that the limit names', async () => {
  const { workflow } = await aLimited({ limit: 1, key: 'input.customer.id' })
  const inputs = [
    { customer: { id: 1 } },
    { customer: { id: 1 } },
    { customer: { id: '1' } },
    { customer: {} },
    'x',
    null,
  ]
  const ids: string[] = []
  for (const input of inputs) ids.push((await aRun(c, { workflow: workflow.slug, input })).id)
  // Whoever lacks the field shares a group with all who lack it.
  assert.deepEqual((await sides(ids)).counts, [0, 2, 3])
  const objects = [
    { a: 1, b: 2 },
    { b: 2, a: 1 },
  ].map((id) => ({ customer: { id } }))
  const more: string[] = []
  for (const input of objects) more.push((await aRun(c, { workflow: workflow.slug, input })).id)
  assert.deepEqual(await sides(more), { counts: [0], queued: [0], waits: [1] })
})

test('the limit is that of the version that waits, and nobody overtakes', async () => {
  const { workflow, pool, agent, link } = await aLimited(1)
  const old = await several(2, workflow)
  await aVersion(c, workflow, { descriptor: { pool, concurrency: 3 } })
  const ids = idsOf([...old, ...(await several(4, workflow))])
  assert.deepEqual(await sides(ids), { counts: [0], queued: [0], waits: [1, 2, 3, 4, 5] })
  await finish(link, await takeNext(agent, link))
  assert.deepEqual(await sides(ids), { counts: [1, 2, 3], queued: [1, 2, 3], waits: [4, 5] })
})

test('a delayed run counts when its time has come', async () => {
  const { workflow, agent, link } = await aLimited(1)
  const { run: later } = await c.call(ops.runs.trigger, { org: c.org, workflow: workflow.slug, delayMs: 3_600_000 })
  const ids = [later.id, ...idsOf(await several(2, workflow))]
  assert.deepEqual(await sides(ids), { counts: [1], queued: [1], waits: [2] })
  const first = await takeNext(agent, link)
  await ageTimers(c, later.id)
  while ((await sides(ids)).waits.length < 2) await runOf(c, later.id)
  await finish(link, first)
  assert.deepEqual(await sides(ids), { counts: [2], queued: [2], waits: [0] })
})

test('triggers whose commit was not heard of are let in once', async () => {
  const { workflow, agent, link } = await aLimited(1)
  const who = { orgId: c.orgId, actor: null, ...noCredential }
  const ask = { workflow: workflow.id, tags: [], priority: 0, trigger: { kind: 'api' as const } }
  const runs = await Promise.all([1, 2].map(async () => (await prepareRun(c.deps, who, ask)).run))
  const times = await commitTriggers(c.db, runs)
  const offer = await takeNext(agent, link)
  assert.deepEqual(await commitTriggers(c.db, runs), times)
  assert.deepEqual(await sides(idsOf(runs)), { counts: [0], queued: [], waits: [1] })
  await finish(link, offer)
  assert.deepEqual(await sides(idsOf(runs)), { counts: [1], queued: [1], waits: [] })
})

test('one who is let in at the very moment of his cancel leaves no room behind', async () => {
  const { workflow, agent, link } = await aLimited(1)
  const ids = idsOf(await several(21, workflow))
  for (let i = 0; i < 10; i++) {
    const offer = await takeNext(agent, link)
    const next = ids[ids.indexOf(offer.run) + 1]!
    await Promise.all([finish(link, offer), c.call(ops.runs.cancel, { run: next })])
    const { counts, waits } = await sides(ids)
    assert.equal(counts.length, 1, `${counts.join()} count, ${waits.join()} wait`)
    assert.equal((await runOf(c, next)).status, 'cancelled')
  }
})
