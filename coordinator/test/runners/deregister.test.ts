import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { ops } from '@windlass/shared/ops/index.ts'
import { anAgent, end, takeNext, type TestAgent } from '../_kit/agent.ts'
import { entriesBy } from '../_kit/audit.ts'
import { aCoordinator, aRun, rawCall, refusal, runOf, type TestCoordinator } from '../_kit/coordinator.ts'
import { untilNoted } from '../_kit/noted.ts'
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

async function aRunner(name = 'agent'): Promise<TestAgent> {
  const agent = await anAgent(c, { name })
  agents.push(agent)
  return agent
}

const deregister = ({ id }: TestAgent, force = false) => c.call(ops.runners.deregister, { runner: id, force })

test('a runner that is offline and has nothing is forgotten, with one entry in the log', async () => {
  const agent = await aRunner('gone')
  const [entry, ...more] = await entriesBy(c, () => deregister(agent))
  assert.deepEqual(more, [])
  assert.deepEqual([entry?.action, entry?.target.name, entry?.after], ['runners.deregister', 'gone', { force: false }])
  const { runners } = await c.call(ops.runners.list, { org: c.org })
  assert.ok(!runners.some(({ id }) => id === agent.id))
  for (const verb of [ops.runners.get, ops.runners.cordon, ops.runners.plan] as unknown as [typeof ops.runners.get])
    await assert.rejects(c.call(verb, { runner: agent.id }), refusal('NOT_FOUND'))
  await assert.rejects(deregister(agent), refusal('NOT_FOUND'))
  await assert.rejects(agent.poll(1, 0), refusal('UNAUTHENTICATED'))
})

test('one that is online or has runs is not, and it is said what it has', async () => {
  const agent = await aRunner()
  const link = await agent.connect()
  await assert.rejects(deregister(agent), (error: Error & { detail?: Record<string, unknown> }) => {
    refusal('RUNNER_BUSY')(error)
    assert.match(error.message, /is online/)
    assert.deepEqual(error.detail, {
      runner: agent.id,
      online: true,
      state: 'open',
      offered: 0,
      executing: 0,
      parked: 0,
    })
    return true
  })
  await aRun(c, { workflow: 'any' })
  const offer = await takeNext(agent, link)
  await untilNoted(c, agent)
  await c.db`
    update runners
    set last_poll_at = now() - interval '2 min', last_heartbeat_at = now() - interval '2 min'
    where id = ${agent.id}`
  await assert.rejects(deregister(agent), /has 1 run\. Wait until they have gone to others/)
  await link.report(offer, 2, end({ how: 'returned', outputText: '1' }))
  await deregister(agent)
})

test('by force it is revoked first: its runs go the way of a revoked runner, and show its name for ever', async () => {
  const agent = await aRunner('stubborn')
  const link = await agent.connect()
  await aRun(c, { workflow: 'any' })
  const offer = await takeNext(agent, link)
  const [entry, ...more] = await entriesBy(c, () => deregister(agent, true))
  assert.deepEqual(more, [])
  assert.deepEqual([entry?.before?.['executing'], entry?.after], [1, { force: true }])
  assert.equal((await link.next('refused')).code, 'REVOKED')
  assert.equal((await runOf(c, offer.run)).runner?.name, 'stubborn')
  await link.report(offer, 2, end({ how: 'lost', reason: 'revoked' }))
  assert.equal((await runOf(c, offer.run)).status, 'queued')
  assert.equal((await rawCall({ url: c.url, apiKey: offer.token }, 'GET', `/runner/v1/runs/${offer.run}`)).status, 401)
  await c.call(ops.runs.cancel, { run: offer.run })
})

test('a revoked runner is forgotten though its agent was heard of a moment ago', async () => {
  const agent = await aRunner()
  await agent.connect()
  await c.call(ops.runners.revoke, { runner: agent.id })
  await deregister(agent)
})

test('of a poll and a deregistration at once one wins, and no run is lost', async () => {
  for (let round = 0; round < 10; round++) {
    const agent = await aRunner()
    const { id } = await aRun(c, { workflow: 'any' })
    const [offers, gone] = await Promise.allSettled([agent.poll(1, 100), deregister(agent)])
    const placements = await c.db`select 1 from placements where runner_id = ${agent.id}`
    if (gone.status === 'fulfilled') assert.equal(placements.length, 0, 'it was forgotten with a run')
    else assert.equal(offers.status, 'fulfilled')
    await c.call(ops.runs.cancel, { run: id })
    await c.db`delete from placements where runner_id = ${agent.id}`
  }
})

test('of deregistrations and revocations at once one forgets it, and the others find it revoked or gone', async () => {
  for (let round = 0; round < 5; round++) {
    const { id: runner } = await aRunner()
    const verbs = [
      ...[1, 2, 3].map(() => c.call(ops.runners.deregister, { runner, force: true })),
      ...[1, 2, 3].map(() => c.call(ops.runners.revoke, { runner })),
    ]
    const answers = await Promise.allSettled(verbs)
    const refused = answers.flatMap((one) => (one.status === 'rejected' ? [one.reason as { code: string }] : []))
    assert.deepEqual([...new Set(refused.map(({ code }) => code))], ['NOT_FOUND'])
    assert.equal(answers.slice(0, 3).filter(({ status }) => status === 'fulfilled').length, 1)
    const entries = await c.db`select from audit_log where target_id = ${runner} and action = 'runners.deregister'`
    assert.equal(entries.length, 1)
  }
})
