import assert from 'node:assert/strict'
import { after, before, beforeEach, test } from 'node:test'
import { ops } from '@windlass/shared/ops/index.ts'
import { placementOf, anAgent, end, returned, type TestAgent } from '../_kit/agent.ts'
import { aCoordinator, aRun, logOf, runOf, type TestCoordinator } from '../_kit/coordinator.ts'
import { anEnvironment } from '../_kit/environments.ts'
import { until } from '../_kit/until.ts'
import { aWorkflow } from '../_kit/workflow.ts'

const HOUR_MS = 3_600_000

let c: TestCoordinator
const agents: TestAgent[] = []
let pools = 0
/** Of the test's own pool, in which nothing lies from another test. */
let workflow: string
let pool: string

before(async () => {
  c = await aCoordinator()
  await anEnvironment(c, 'staging')
})
beforeEach(async () => {
  pool = `pool-${++pools}`
  await c.call(ops.pools.create, { org: c.org, name: pool })
  workflow = (await aWorkflow(c, { descriptor: { pool, timeout: '90s', cancelGrace: '3s', process: 'reuse' } })).slug
})
after(async () => {
  for (const agent of agents) agent.close()
  await c.stop()
})

async function agentHere(name?: string): Promise<TestAgent> {
  const { runnerPools } = await c.call(ops.pools.list, { org: c.org })
  const agent = await anAgent(c, { name, pool: runnerPools.find((one) => one.name === pool)!.id })
  agents.push(agent)
  return agent
}

const ids = (runs: { id: string }[]) => runs.map((run) => run.id)
const runsIn = (offers: { run: string }[]) => offers.map((offer) => offer.run)

async function someRuns(n: number, priority = 0) {
  const runs = []
  for (let i = 0; i < n; i++) runs.push(await aRun(c, { workflow, input: { n: i }, priority }))
  return runs
}

/** Resolves when so many polls wait, so that what comes next finds them. */
const polling = (n: number, at = c) => until(`${n} waiting polls`, () => at.deps.dispatchers.waiting() === n)

test('an offer carries everything that executing the run takes', async () => {
  const { id, trigger } = await aRun(c, { workflow, input: { n: 1 }, environment: 'staging' })
  const agent = await agentHere()
  const [offer] = await agent.poll()
  assert.ok(offer)
  const { token, bundle, reuseKey, ...rest } = offer
  assert.deepEqual(rest, {
    run: id,
    attempt: 1,
    epoch: 1,
    org: c.org,
    workflow: { slug: workflow, version: 1 },
    environment: 'staging',
    trigger,
    inputText: '{"n":1}',
    process: 'reuse',
    slots: 1,
    replay: false,
    journal: { entries: 0, forgotten: 0, text: null },
    timeoutMs: 90_000,
    graceMs: 3000,
    outputBytes: 1024 * 1024,
    eventDataBytes: 64 * 1024,
    variables: {},
    secrets: false,
  })
  assert.match(token, /^ey/)
  assert.match(bundle.digest, /^[0-9a-f]{64}$/)
  assert.ok(reuseKey.includes('staging'))
  const run = await runOf(c, id)
  assert.deepEqual([run.status, run.runner?.id, run.startedAt], ['pending', agent.id, null])
  assert.ok(run.claimedAt)
  const last = (await logOf(c, id)).at(-1)
  assert.deepEqual([last?.type, last?.data], ['run.pending', { runner: agent.id, attempt: 1, epoch: 1 }])
})

test('what was queued first is claimed first, and a higher priority goes before', async () => {
  const normal = await someRuns(2)
  const low = await someRuns(1, -5)
  const high = await someRuns(2, 9)
  const agent = await agentHere()
  const claimed: string[] = []
  for (let i = 0; i < 5; i++) claimed.push(...runsIn(await agent.poll(1)))
  assert.deepEqual(claimed, ids([...high, ...normal, ...low]))
})

test('a poll gets no more than it has slots for, and takes all that it has when it is there', async () => {
  const runs = await someRuns(5)
  const agent = await agentHere()
  assert.deepEqual(runsIn(await agent.poll(3)).sort(), ids(runs.slice(0, 3)))
  assert.deepEqual(runsIn(await agent.poll(10)).sort(), ids(runs.slice(3)))
})

test('a poll waits for work, and is answered with nothing when its time is over', async () => {
  const agent = await agentHere()
  const since = performance.now()
  assert.deepEqual(await agent.poll(1, 150), [])
  assert.ok(performance.now() - since >= 140)
  assert.deepEqual(await agent.poll(1, 0), [])
  const waiting = agent.poll(1, 25_000)
  await polling(1)
  const { id } = await aRun(c, { workflow })
  assert.deepEqual(runsIn(await waiting), [id])
})

test('runs of other pools are not offered', async () => {
  const elsewhere = await aWorkflow(c)
  const { id } = await aRun(c, { workflow: elsewhere.slug })
  assert.deepEqual(await (await agentHere()).poll(4, 100), [])
  await c.call(ops.runs.cancel, { run: id })
})

test('few runs are spread over the runners that wait', async () => {
  const three = await Promise.all(['a', 'b', 'c'].map(agentHere))
  const polls = three.map((agent) => agent.poll(4, 25_000))
  await polling(3)
  await Promise.all(Array.from({ length: 3 }, () => aRun(c, { workflow })))
  const answers = await Promise.all(polls)
  assert.deepEqual(
    answers.map((offers) => offers.length),
    [1, 1, 1],
  )
})

test('a poll whose client has gone takes nothing', async () => {
  const [gone, stays] = [await agentHere('gone'), await agentHere('stays')]
  const leaving = new AbortController()
  const left = gone.poll(4, 20_000, leaving.signal)
  await polling(1)
  leaving.abort()
  await assert.rejects(left)
  await polling(0)
  const { id } = await aRun(c, { workflow })
  assert.deepEqual(runsIn(await stays.poll(4)), [id])
})

test('two coordinators over one database never give out a run twice, and give out all', async () => {
  const second = await c.another()
  const here = await Promise.all(['a', 'b'].map(agentHere))
  const there = (await Promise.all(['c', 'd'].map(agentHere))).map((agent) => agent.at(second))
  const done = new AbortController()
  const claimed: string[] = []
  const taking = [...here, ...there].map(async (agent) => {
    // A poll that ends while it is being given runs loses them until their offers have run out.
    while (!done.signal.aborted) claimed.push(...runsIn(await agent.poll(3, 2000)))
  })
  const runs = await Promise.all(Array.from({ length: 120 }, (_, i) => aRun(i % 2 ? c : second, { workflow })))
  await until('all runs to be claimed', () => claimed.length >= runs.length)
  done.abort()
  await Promise.all(taking)
  assert.deepEqual(claimed.toSorted(), ids(runs).toSorted())
  const [row] = await c.db<[{ n: number }]>`select count(*)::int as n from placements where run_id = any(${ids(runs)})`
  assert.equal(row.n, runs.length)
})

test('a run that is triggered through one coordinator wakes the poll that waits at another', async () => {
  // No poll looks by itself: what it gets, the bell has brought.
  const second = await c.another({}, { lookAgainMs: { polls: HOUR_MS, readers: HOUR_MS } })
  const agent = (await agentHere()).at(second)
  const poll = agent.poll(1, 25_000)
  await polling(1, second)
  const { id } = await aRun(c, { workflow })
  assert.deepEqual(runsIn(await poll), [id])
})

test('an accepted offer is a lease of its runner alone', async () => {
  await aRun(c, { workflow })
  const agent = await agentHere()
  const link = await agent.connect()
  const [offer] = await agent.poll()
  const stranger = await (await agentHere('stranger')).connect()
  assert.deepEqual(await stranger.accept(offer!), { t: 'accepted', runs: [], no: [placementOf(offer!)] })
  assert.deepEqual(await link.accept(offer!), { t: 'accepted', runs: [placementOf(offer!)], no: [] })
  // Asked again after a lost connection: the answer is the same.
  assert.deepEqual((await link.accept(offer!)).runs, [placementOf(offer!)])
  const unknown = { ...offer!, epoch: 7 }
  assert.deepEqual((await link.accept(unknown)).no, [placementOf(unknown)])
  await link.report(offer!, 1, end(returned(1)))
  assert.deepEqual((await link.accept(offer!)).no, [placementOf(offer!)])
})

test('an offer that cannot be told goes back at once, and nobody is blamed for it', async (t) => {
  const [run] = await someRuns(1)
  const agent = await agentHere()
  const read = t.mock.method(c.deps.variableSets, 'get', () => Promise.reject(new Error('the connection was cut')))
  await assert.rejects(agent.poll())
  assert.equal((await runOf(c, run!.id)).status, 'queued')
  read.mock.restore()
  assert.deepEqual(runsIn(await agent.poll()), [run!.id])
})
