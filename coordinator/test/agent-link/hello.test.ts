import assert from 'node:assert/strict'
import { after, afterEach, before, test } from 'node:test'
import { newId, type RunnerId } from '@windlass/shared/ids.ts'
import { ops } from '@windlass/shared/ops/index.ts'
import { OLDEST_PROTOCOL, PROTOCOL, PROTOCOL_NAME } from '@windlass/shared/wire/agent.ts'
import { aRunningAgent, anAgent, end, line, placementOf, returned, takeNext, type TestAgent } from '../_kit/agent.ts'
import { aCoordinator, aRun, logOf, runOf, type TestCoordinator } from '../_kit/coordinator.ts'
import { until } from '../_kit/until.ts'
import { aWorkflow } from '../_kit/workflow.ts'

let c: TestCoordinator
let agents: TestAgent[] = []

before(async () => {
  c = await aCoordinator()
  await aWorkflow(c, { slug: 'any' })
  await aWorkflow(c, { slug: 'once', descriptor: { retries: { crash: 0 }, cancelGrace: '7s' } })
})
afterEach(() => {
  for (const agent of agents) agent.close()
  agents = []
})
after(() => c.stop())

async function running(workflow = 'any') {
  await aRun(c, { workflow })
  const held = await aRunningAgent(c)
  agents.push(held.agent)
  return held
}

/** A connection counts as older than it is by the way of an answer, which may be seconds on a busy machine. */
async function setBack(run: string): Promise<void> {
  await c.db`
    update placements
    set offered_at = offered_at - interval '5 seconds', accepted_at = accepted_at - interval '5 seconds'
    where run_id = ${run}`
}

const hello = (holds: [string, number][] = []) =>
  ({ t: 'hello', protocol: PROTOCOL_NAME, version: 'test', slots: 4, holds }) as const

test('an agent that comes back hears up to where its entries have been taken, and goes on from there', async () => {
  const { agent, link, offer } = await running()
  await link.report(offer, 2, line('a'), line('b'))
  link.close()
  const again = await agent.dial()
  again.send(hello([[offer.run, offer.epoch]]))
  const welcome = await again.next('welcome')
  assert.deepEqual(welcome.resume, [{ run: offer.run, epoch: offer.epoch, seq: 3 }])
  assert.deepEqual([welcome.stale, welcome.cancel], [[], []])
  assert.deepEqual(await again.report(offer, 4, line('c'), end(returned(1))), { kind: 'ack', seq: 5 })
  assert.deepEqual(
    (await logOf(c, offer.run)).filter(({ channel }) => channel === 'log').map(({ data }) => data.text),
    ['a', 'b', 'c'],
  )
})

test('the welcome hands out how the fleet is to behave', async () => {
  const agent = await anAgent(c)
  agents.push(agent)
  const link = await agent.dial()
  link.send(hello())
  const { heartbeatMs, fenceMs, leaseMs } = c.deps.config
  assert.ok(fenceMs < leaseMs)
  assert.deepEqual((await link.next('welcome')).settings, {
    heartbeatMs,
    fenceMs,
    cancelGraceMs: 10_000,
    pollMs: 25_000,
    renewKeyMs: 18 * 3600 * 1000,
    pool: {
      isolation: 'process',
      network: 'host',
      slots: null,
      limits: { memoryMb: null, cpus: null, processes: null, openFiles: null, diskMb: null },
      parkedMs: null,
      drainMs: null,
    },
  })
})

test('what an agent holds and the database does not know is stale', async () => {
  const { agent, link, offer } = await running()
  await link.report(offer, 2, end(returned(1)))
  const again = await agent.dial()
  const holds: [string, number][] = [
    [offer.run, offer.epoch],
    [newId('run'), 1],
  ]
  again.send(hello(holds))
  const welcome = await again.next('welcome')
  assert.deepEqual(welcome.stale, holds)
  assert.deepEqual(welcome.resume, [])
})

test('an agent that was started again and knows nothing of its run: the run starts again at once, as attempt 2', async () => {
  const { agent, offer } = await running()
  await setBack(offer.run)
  const link = await agent.connect([])
  const run = await runOf(c, offer.run)
  assert.deepEqual([run.status, run.attempt], ['queued', 2])
  const restarted = (await logOf(c, offer.run)).find(({ type }) => type === 'run.restarted')
  assert.match(restarted?.data.reason as string, /started again/)
  const again = await takeNext(agent, link)
  assert.deepEqual([again.run, again.attempt, again.epoch], [offer.run, 2, offer.epoch + 1])
  await link.report(again, 2, end(returned(1)))
})

test('an offer whose answer never arrived is back in the queue as soon as its agent connects, and costs no attempt', async () => {
  const agent = await anAgent(c)
  agents.push(agent)
  const { id } = await aRun(c, { workflow: 'once' })
  await agent.poll()
  await setBack(id)
  await agent.connect([])
  const run = await runOf(c, id)
  assert.deepEqual([run.status, run.attempt], ['queued', 1])
  await c.call(ops.runs.cancel, { run: id })
})

test('a cancel that was asked for while the agent was away is in its welcome', async () => {
  const { agent, link, offer } = await running('once')
  link.close()
  await link.closed()
  await c.call(ops.runs.cancel, { run: offer.run, reason: 'meanwhile' })
  const again = await agent.dial()
  again.send(hello([[offer.run, offer.epoch]]))
  const { cancel } = await again.next('welcome')
  assert.deepEqual(cancel, [
    { run: offer.run, epoch: offer.epoch, why: 'cancelled', reason: 'meanwhile', graceMs: 7000 },
  ])
  await again.report(offer, 2, end({ how: 'cancelled', forced: false }))
  assert.equal((await runOf(c, offer.run)).status, 'cancelled')
})

test('a second socket of the same agent takes over from the first, and loses none of its runs', async () => {
  const { agent, link, offer } = await running()
  const second = await agent.connect([placementOf(offer)])
  assert.equal((await link.closed()).code, 4001)
  assert.equal((await runOf(c, offer.run)).status, 'running')
  await c.call(ops.runs.cancel, { run: offer.run })
  assert.equal((await second.next('cancel')).runs[0]?.run, offer.run)
  await second.report(offer, 2, end({ how: 'cancelled', forced: true }))
  assert.equal((await runOf(c, offer.run)).status, 'cancelled')
})

test('an agent whose protocol is not spoken is told what to upgrade and by which command, and its socket is closed', async () => {
  for (const [protocol, what] of [
    [`windlass/${OLDEST_PROTOCOL - 1}`, `windlass/${OLDEST_PROTOCOL - 1}. Upgrade the agent`],
    [`windlass/${PROTOCOL + 1}`, `windlass/${PROTOCOL + 1}. Upgrade the coordinator`],
    // As the previews said it: never one of ours.
    [1, 'protocol 1 of a preview. Upgrade the agent'],
    [4, 'protocol 4 of a preview. Upgrade the agent'],
  ] as const) {
    const agent = await anAgent(c)
    agents.push(agent)
    const link = await agent.dial()
    link.sendText(JSON.stringify({ t: 'hello', protocol, its: 'own fields' }))
    const refused = await link.next('refused')
    assert.equal(refused.code, 'UPGRADE_REQUIRED')
    assert.match(refused.message, new RegExp(`speaks ${PROTOCOL_NAME}, the agent ${what}`))
    assert.ok(refused.message.endsWith(`curl -fsSL ${c.url}/install.sh | sh -s -- --upgrade`))
    assert.equal((await link.closed()).code, 1008)
  }
})

test('fresh tokens are given for what the agent executes, and for nothing else', async () => {
  const { link, offer } = await running()
  const theirs = await running()
  link.send({ t: 'renew', runs: [placementOf(offer), placementOf(theirs.offer), [offer.run, 9]] })
  const { runs } = await link.next('tokens')
  assert.deepEqual(
    runs.map(({ run, epoch }) => [run, epoch]),
    [placementOf(offer)],
  )
  const self = await c.call(ops.runnerSurface.self, { run: offer.run }, { apiKey: runs[0]!.token })
  assert.equal(self.run.status, 'running')
})

test('a connected agent shows as online with what it runs, and keeps what it says of itself', async () => {
  const { agent, offer } = await running()
  const link = await agent.dial()
  link.send({ t: 'hello', protocol: PROTOCOL_NAME, version: '9.9', slots: 7, holds: [placementOf(offer)] })
  await link.next('welcome')
  const { runner } = await c.call(ops.runners.get, { runner: agent.id })
  assert.deepEqual([runner.status, runner.activeRuns, runner.version, runner.slots], ['online', 1, '9.9', 7])
  await until(
    'the poll to be noted',
    async () => (await c.call(ops.runners.get, { runner: agent.id })).runner.lastPollAt,
  )
})

test('every socket of many agents lives on after its upgrade', async () => {
  for (let i = 0; i < 25; i++) {
    const agent = await anAgent(c)
    agents.push(agent)
    const first = await agent.connect()
    // Memory that a closed socket gives back is taken by the next: that is where upgrades used to end.
    first.close()
    await first.closed()
    const link = await agent.connect()
    const { n, stale, cancel } = await link.heartbeat(i)
    assert.deepEqual([n, stale, cancel], [i, [], []])
  }
})

test('an agent waits for its turn, and one that has gone meanwhile changes nothing', async () => {
  const { agent, link, offer } = await running()
  const { greetings } = c.deps.sockets
  const ends = await Promise.all(['one', 'two'].map((id) => greetings.take({ orgId: c.orgId, id: id as RunnerId })))
  const gone = await agent.dial()
  // By this hello the run would be lost.
  gone.send(hello())
  await link.closed()
  const again = await agent.dial()
  again.send(hello([[offer.run, offer.epoch]]))
  await gone.closed()
  assert.deepEqual([gone.unread(), again.unread()], [[], []])
  for (const end of ends) end!(0)
  const { resume, stale } = await again.next('welcome')
  assert.deepEqual([resume, stale], [[{ run: offer.run, epoch: offer.epoch, seq: 1 }], []])
})
