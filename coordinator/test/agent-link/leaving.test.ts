import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { RunnerId } from '@windlass/shared/ids.ts'
import { ops } from '@windlass/shared/ops/index.ts'
import { aHello, anAgent, anInstance, end, placementOf, returned, takeNext, type TestAgent } from '../_kit/agent.ts'
import { aCoordinator, aRun, refusal, runOf, type TestCoordinator } from '../_kit/coordinator.ts'
import { until } from '../_kit/until.ts'
import { aWorkflow } from '../_kit/workflow.ts'

let c: TestCoordinator
const agents: TestAgent[] = []

before(async () => {
  c = await aCoordinator()
  await aWorkflow(c, { slug: 'any' })
})
after(async () => {
  for (const agent of agents) agent.close()
  await c.stop()
})

const intakeOf = async ({ id }: TestAgent) => (await c.call(ops.runners.get, { runner: id })).runner.intake

test('an agent that leaves gives back at once what it has not taken, gets no more, and keeps what it executes', async () => {
  const agent = await anAgent(c)
  agents.push(agent)
  const instance = anInstance()
  const link = await agent.connect([], { instance })
  await aRun(c, { workflow: 'any' })
  const taken = await takeNext(agent, link)
  const { id } = await aRun(c, { workflow: 'any' })
  await agent.poll()
  link.send({ t: 'leave', reason: 'the agent is being stopped', deadlineMs: 60_000 })
  await until('the offer to be back', async () => (await runOf(c, id)).status === 'queued')
  const { state, by, reason } = await intakeOf(agent)
  assert.deepEqual([state, by?.kind, reason], ['draining', 'agent', 'the agent is being stopped'])
  assert.equal((await runOf(c, id)).attempt, 1)
  assert.deepEqual(await agent.poll(1, 300), [])
  // The same start, over another connection, is still leaving.
  const again = await agent.connect([placementOf(taken)], { instance })
  assert.equal((await again.heartbeat(1, placementOf(taken))).intake?.state, 'draining')
  assert.deepEqual(await again.report(taken, 2, end(returned(1))), { kind: 'ack', seq: 2 })
  assert.equal((await intakeOf(agent)).state, 'drained')
  // The next one is not.
  const next = await agent.connect([], { instance: anInstance({ previous: [instance.id], host: instance.host }) })
  assert.equal((await next.heartbeat(1)).intake?.state, 'open')
  assert.equal((await takeNext(agent, next)).run, id)
})

test('what a person has decided outlives a new start', async () => {
  const agent = await anAgent(c)
  agents.push(agent)
  const instance = anInstance()
  const link = await agent.connect([], { instance })
  await c.call(ops.runners.cordon, { runner: agent.id, reason: 'by hand' })
  link.send({ t: 'leave', reason: 'stop', deadlineMs: 0 })
  const next = await agent.connect([], { instance: anInstance({ previous: [instance.id], host: instance.host }) })
  const { intake } = await next.heartbeat(1)
  assert.deepEqual([intake?.state, intake?.reason], ['cordoned', 'by hand'])
})

test('a revoked agent may say what became of its runs, and nothing else', async () => {
  const agent = await anAgent(c)
  agents.push(agent)
  const link = await agent.connect()
  await aRun(c, { workflow: 'any' })
  const offer = await takeNext(agent, link)
  await c.call(ops.runners.revoke, { runner: agent.id })
  assert.equal((await link.next('refused')).code, 'REVOKED')
  link.send({ t: 'renew', runs: [placementOf(offer)] })
  link.send({ t: 'heartbeat', n: 1, holds: [placementOf(offer)] })
  await assert.rejects(agent.poll(1, 0), refusal('UNAUTHENTICATED'))
  const lost = end({ how: 'lost', reason: 'the runner was revoked' })
  assert.deepEqual(await link.report(offer, 2, lost), { kind: 'ack', seq: 2 })
  assert.deepEqual(
    link.unread().filter(({ t }) => t === 'tokens' || t === 'beat'),
    [],
  )
  const { status, attempt } = await runOf(c, offer.run)
  assert.deepEqual([status, attempt], ['queued', 2])
  assert.equal((await link.closed()).code, 1008)
})

test('an agent whose runner was revoked or forgotten before it said hello is told so', async () => {
  const revoke = (runner: RunnerId) => c.call(ops.runners.revoke, { runner })
  const forget = (runner: RunnerId) => c.call(ops.runners.deregister, { runner })
  for (const shutOut of [revoke, forget]) {
    const agent = await anAgent(c)
    agents.push(agent)
    const link = await agent.dial()
    await shutOut(agent.id)
    link.send(aHello({ instance: anInstance() }))
    const { code, message } = await link.next('refused')
    assert.deepEqual([code, /revoked/.test(message)], ['REVOKED', true])
  }
})
