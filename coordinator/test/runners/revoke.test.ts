import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { ops } from '@windlass/shared/ops/index.ts'
import { anAgent, end, type Held, takeNext, type TestAgent } from '../_kit/agent.ts'
import { entriesBy } from '../_kit/audit.ts'
import { aCoordinatorOfItsOwn, aRun, rawCall, refusal, runOf, type TestCoordinator } from '../_kit/coordinator.ts'
import { until } from '../_kit/until.ts'
import { aWorkflow } from '../_kit/workflow.ts'

let c: TestCoordinator
let other: TestCoordinator
const agents: TestAgent[] = []
let pools = 0

before(async () => {
  c = await aCoordinatorOfItsOwn({ SWEEP_MS: 50, AMNESTY_MS: 0 })
  other = await c.another()
})
after(async () => {
  for (const agent of agents) agent.close()
  await c.stop()
})

/** An agent in a pool of its own that executes a run, seen through this coordinator. */
async function aBusyOne(at: TestCoordinator): Promise<Held & { workflow: string }> {
  const workflow = `revoked-${++pools}`
  const { runnerPool } = await c.call(ops.pools.create, { org: c.org, name: workflow })
  await aWorkflow(c, { slug: workflow, descriptor: { pool: workflow } })
  at.deps.targets.forget(c.orgId)
  const agent = (await anAgent(c, { pool: runnerPool.id })).at(at)
  agents.push(agent)
  const link = await agent.connect()
  await aRun(c, { workflow })
  return { agent, link, offer: await takeNext(agent, link), workflow }
}

/** Another run's lease runs out, and the sweeper has seen it. */
async function aSweep(): Promise<void> {
  const sign = await aBusyOne(c)
  await c.db`update placements set lease_expires_at = now() where run_id = ${sign.offer.run}`
  await until('the sign to be taken away', async () => (await runOf(c, sign.offer.run)).status === 'queued')
}

const revoke = ({ id }: TestAgent, reason = '') => c.call(ops.runners.revoke, { runner: id, reason })
const lost = end({ how: 'lost', reason: 'the runner was revoked' })

/** With the agent's own token, and with that of the run's program. */
async function statusOf({ agent, offer }: Held, at: TestCoordinator): Promise<number[]> {
  const claims = await rawCall(
    { url: at.url, apiKey: await agent.token() },
    'POST',
    '/runner/v1/claims',
    '{"slots":1,"waitMs":0}',
  )
  const self = await rawCall({ url: at.url, apiKey: offer.token }, 'GET', `/runner/v1/runs/${offer.run}`)
  return [claims.status, self.status]
}

test('a revoked runner is told, its identity and the tokens of its runs are dead at every coordinator within 5 s', async () => {
  for (const at of [c, other]) {
    const held = await aBusyOne(at)
    // Both coordinators have just seen that all is well.
    for (const each of [c, other]) assert.deepEqual(await statusOf(held, each), [200, 200])
    const { runner } = await revoke(held.agent, 'stolen')
    assert.deepEqual([runner.intake.state, runner.intake.reason], ['revoked', 'stolen'])
    const { code, message } = await held.link.next('refused')
    assert.equal(code, 'REVOKED')
    assert.match(message, /revoked/)
    for (const each of [c, other])
      await until('both to be refused', async () => (await statusOf(held, each)).every((status) => status === 401))
  }
})

test('its agent may say in its last seconds what became of its runs, which start again elsewhere', async () => {
  const held = await aBusyOne(other)
  await revoke(held.agent)
  await held.link.next('refused')
  assert.equal((await runOf(c, held.offer.run)).status, 'running', 'it may still execute')
  assert.deepEqual(await held.link.report(held.offer, 2, lost), { kind: 'ack', seq: 2 })
  const run = await runOf(c, held.offer.run)
  assert.deepEqual([run.status, run.attempt], ['queued', 2])
  assert.equal((await held.link.closed()).code, 1008)
})

test('what it does not report goes to others when the lease runs out, and not before', async () => {
  const held = await aBusyOne(c)
  await revoke(held.agent)
  held.link.close()
  await aSweep()
  assert.equal((await runOf(c, held.offer.run)).status, 'running')
  await c.db`update placements set lease_expires_at = now() where run_id = ${held.offer.run}`
  await until('it to be queued', async () => (await runOf(c, held.offer.run)).status === 'queued')
  assert.equal((await runOf(c, held.offer.run)).attempt, 2)
})

test('what it was offered and has not taken goes back at once, and no attempt is counted', async () => {
  const held = await aBusyOne(c)
  const { id } = await aRun(c, { workflow: held.workflow })
  await held.agent.poll(1)
  await revoke(held.agent)
  const run = await runOf(c, id)
  assert.deepEqual([run.status, run.attempt], ['queued', 1])
})

test('revoking is for good, is logged once, and nothing undoes it', async () => {
  const { agent } = await aBusyOne(c)
  const [entry, ...more] = await entriesBy(c, () => Promise.all([1, 2, 3].map(() => revoke(agent, 'stolen'))))
  assert.deepEqual(more, [])
  assert.equal(entry?.action, 'runners.revoke')
  assert.deepEqual(
    [entry.before, entry.after],
    [
      { state: 'open', epoch: 0 },
      { state: 'revoked', epoch: 1, reason: 'stolen' },
    ],
  )
  for (const verb of [ops.runners.cordon, ops.runners.drain, ops.runners.resume] as unknown as [
    typeof ops.runners.cordon,
  ])
    await assert.rejects(c.call(verb, { runner: agent.id }), refusal('RUNNER_REVOKED'))
  await assert.rejects(agent.connect())
})

test('a token that the agent had signed before serves for nothing any more', async () => {
  const { agent } = await aBusyOne(c)
  const token = await agent.token()
  await revoke(agent)
  for (const path of ['/runner/v1/claims', '/runner/v1/identity'])
    assert.equal((await rawCall({ url: c.url, apiKey: token }, 'POST', path, '{}')).status, 401)
})
