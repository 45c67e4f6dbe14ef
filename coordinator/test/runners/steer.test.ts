import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { newId } from '@windlass/shared/ids.ts'
import { ops } from '@windlass/shared/ops/index.ts'
import type { ArgsOf } from '@windlass/shared/ops/op.ts'
import { anAgent, placementOf, takeNext, type TestAgent } from '../_kit/agent.ts'
import { entriesBy } from '../_kit/audit.ts'
import { aCoordinator, anOrg, aRun, refusal, type TestCoordinator } from '../_kit/coordinator.ts'
import { aKey } from '../_kit/credentials.ts'
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

async function aRunner(pool?: string): Promise<TestAgent> {
  const agent = await anAgent(c, { ...(pool !== undefined && { pool }) })
  agents.push(agent)
  return agent
}

/** A pool of its own, so that nobody else takes its runs. */
async function aPool(name: string): Promise<string> {
  const { runnerPool } = await c.call(ops.pools.create, { org: c.org, name })
  await aWorkflow(c, { slug: name, descriptor: { pool: name } })
  return runnerPool.id
}

type More<V extends 'cordon' | 'drain' | 'resume'> = Omit<ArgsOf<(typeof ops.runners)[V]>, 'runner'>
const cordon = async ({ id }: TestAgent, more: More<'cordon'> = {}) =>
  (await c.call(ops.runners.cordon, { runner: id, ...more })).runner.intake
const drain = async ({ id }: TestAgent, more: More<'drain'> = {}) =>
  (await c.call(ops.runners.drain, { runner: id, ...more })).runner.intake
const resume = async ({ id }: TestAgent, more: More<'resume'> = {}) =>
  (await c.call(ops.runners.resume, { runner: id, ...more })).runner.intake
const intakeOf = async ({ id }: TestAgent) => (await c.call(ops.runners.get, { runner: id })).runner.intake

test('a cordon gives a runner no more work, says who and why, and is undone by resume', async () => {
  const agent = await aRunner(await aPool('cordoned'))
  await aRun(c, { workflow: 'cordoned' })
  const closed = await cordon(agent, { reason: 'new disk' })
  assert.deepEqual([closed.state, closed.epoch, closed.reason], ['cordoned', 1, 'new disk'])
  assert.deepEqual([closed.by, closed.deadlineAt, closed.onDeadline], [{ kind: 'caller', name: 'test' }, null, null])
  assert.deepEqual(await agent.poll(1, 100), [])
  const open = await resume(agent)
  assert.deepEqual([open.state, open.epoch], ['open', 2])
  assert.equal((await agent.poll(1)).length, 1)
})

test('a poll that waits is answered as soon as its runner is resumed', async () => {
  const agent = await aRunner(await aPool('waiting'))
  await cordon(agent)
  await aRun(c, { workflow: 'waiting' })
  const poll = agent.poll(1, 20_000)
  await until('the poll to wait', () => c.deps.dispatchers.waiting() > 0)
  await resume(agent)
  assert.equal((await poll).length, 1)
})

test('the same said again changes nothing, and is not logged', async () => {
  const agent = await aRunner()
  assert.deepEqual(await entriesBy(c, () => resume(agent)), [])
  for (const verb of [cordon, drain, resume]) {
    const entries = await entriesBy(c, () => Promise.all(Array.from({ length: 10 }, () => verb(agent))))
    assert.equal(entries.length, 1, verb.name)
  }
  assert.equal((await intakeOf(agent)).epoch, 3)
})

test('a change is logged with what was and what is', async () => {
  const agent = await aRunner()
  const ask = { deadlineMs: 60_000, onDeadline: 'cancel', reason: 'update' } as const
  const [entry] = await entriesBy(c, () => drain(agent, ask))
  assert.deepEqual([entry?.action, entry?.target], ['runners.drain', { type: 'runner', id: agent.id, name: 'agent' }])
  assert.deepEqual(entry?.before, { state: 'open', epoch: 0 })
  const { deadlineAt } = await intakeOf(agent)
  const after = { state: 'draining', epoch: 1, reason: 'update', deadlineAt, onDeadline: 'cancel' }
  assert.deepEqual(entry.after, after)
})

test('a drain is over when nothing live is left, and not before', async () => {
  const agent = await aRunner(await aPool('emptied'))
  const link = await agent.connect()
  await aRun(c, { workflow: 'emptied' })
  const offer = await takeNext(agent, link)
  assert.equal((await drain(agent)).state, 'draining')
  const namesIn = async (intake: 'draining' | 'drained') =>
    (await c.call(ops.runners.list, { org: c.org, pool: 'emptied', intake })).runners.length
  assert.deepEqual([await namesIn('draining'), await namesIn('drained')], [1, 0])
  const { runner } = await c.call(ops.runners.get, { runner: agent.id })
  assert.deepEqual(runner.live, { offered: 0, executing: 1, parked: 0 })
  assert.deepEqual(runner.currentRuns, [offer.run])
  await link.report(offer, 2, ['end', Date.now(), { how: 'returned', outputText: '1' }, 1])
  assert.equal((await intakeOf(agent)).state, 'drained')
  assert.deepEqual([await namesIn('draining'), await namesIn('drained')], [0, 1])
})

test('a drain with another deadline or another end of it is a new one', async () => {
  const agent = await aRunner()
  const first = await drain(agent, { deadlineMs: 60_000 })
  const later = await drain(agent, { deadlineMs: 120_000 })
  assert.deepEqual([first.epoch, later.epoch], [1, 2])
  assert.ok(later.deadlineAt! - first.deadlineAt! > 50_000)
  assert.equal((await drain(agent, { deadlineMs: 120_000, onDeadline: 'cancel' })).epoch, 3)
  await c.db`update runner_intake set since = since - interval '1 h', deadline_at = deadline_at - interval '1 h' where runner_id = ${agent.id}`
  const again = await drain(agent, { deadlineMs: 120_000, onDeadline: 'cancel' })
  assert.equal(again.epoch, 4, 'once the time is up, the same is a new drain')
  assert.ok(again.deadlineAt! > Date.now())
})

test('a drain may follow a cordon, and a cordon leaves a drain as it is', async () => {
  const agent = await aRunner()
  await cordon(agent)
  const drained = await drain(agent, { reason: 'update' })
  assert.deepEqual([drained.state, drained.epoch], ['drained', 2])
  assert.deepEqual(await cordon(agent, { reason: 'something else' }), drained)
})

test('with an epoch a change is made only where nobody else has made one', async () => {
  const agent = await aRunner()
  await cordon(agent, { epoch: 0 })
  for (const verb of [cordon, drain, resume]) {
    await assert.rejects(verb(agent, { epoch: 0 }), (error: Error & { detail?: object }) => {
      refusal('CONFLICT', 'epoch')(error)
      assert.match(error.message, /cordoned with the epoch 1, no longer 0/)
      return true
    })
  }
  const tries = await Promise.allSettled([
    ...Array.from({ length: 5 }, () => drain(agent, { epoch: 1 })),
    ...Array.from({ length: 5 }, () => resume(agent, { epoch: 1 })),
  ])
  assert.equal(tries.filter(({ status }) => status === 'fulfilled').length, 1)
  assert.equal((await intakeOf(agent)).epoch, 2)
})

test('of drains and resumes at once each one raises the epoch or has nothing to change', async () => {
  const agent = await aRunner()
  const verbs = () => Array.from({ length: 20 }, (_, i) => (i % 2 ? resume(agent) : drain(agent)))
  const entries = await entriesBy(c, () => Promise.all(verbs()))
  const { epoch } = await intakeOf(agent)
  assert.equal(entries.length, epoch)
  // Oldest first: each begins where the one before has ended.
  const epochs = entries.toReversed().map((entry) => [entry.before?.['epoch'], entry.after?.['epoch']])
  assert.deepEqual(
    epochs,
    Array.from({ length: epoch }, (_, i) => [i, i + 1]),
  )
})

test('resume ends a quarantine', async () => {
  const agent = await aRunner()
  await c.db`
    update runner_intake
    set quarantined_at = now(), quarantined_until = now() + interval '10 minutes', quarantine_reason = 'no disk'
    where runner_id = ${agent.id}`
  const { runner } = await c.call(ops.runners.get, { runner: agent.id })
  assert.equal(runner.quarantine?.reason, 'no disk')
  const [entry] = await entriesBy(c, () => resume(agent))
  assert.deepEqual(entry?.before, { state: 'open', epoch: 0, isQuarantined: true })
  assert.equal((await c.call(ops.runners.get, { runner: agent.id })).runner.quarantine, null)
})

test('the agent is told at once, by whichever coordinator it is connected to', async () => {
  const other = await c.another()
  const here = await aRunner()
  const there = await aRunner()
  const links = [await here.connect(), await there.at(other).connect()]
  for (const [i, agent] of [here, there].entries()) {
    const { deadlineAt } = await drain(agent, { reason: 'update' })
    const { intake } = await links[i]!.next('intake')
    assert.deepEqual(intake, { state: 'drained', epoch: 1, reason: 'update', deadlineAt })
    await resume(agent)
    assert.equal((await links[i]!.next('intake')).intake.state, 'open')
    links[i]!.close()
  }
  await other.stop()
})

test("a runner of another org is not there, and members may look at one's own only", async () => {
  const agent = await aRunner()
  const { apiKey: stranger } = await anOrg(c)
  const member = await aKey(c.db, { orgId: c.orgId, role: 'member' })
  const { cordon, drain, resume, revoke, deregister } = ops.runners
  for (const verb of [cordon, drain, resume, revoke, deregister] as unknown as [typeof revoke]) {
    const ask = { runner: agent.id }
    await assert.rejects(c.call(verb, ask, { apiKey: stranger }), refusal('NOT_FOUND'))
    await assert.rejects(c.call(verb, ask, { apiKey: member }), refusal('FORBIDDEN'))
    await assert.rejects(c.call(verb, { runner: newId('rnr') }), refusal('NOT_FOUND'))
  }
  await c.call(ops.runners.plan, { runner: agent.id }, { apiKey: member })
  assert.equal((await intakeOf(agent)).epoch, 0)
})

test('no claim gives anything out once a drain has been answered', async () => {
  const agent = await aRunner(await aPool('raced'))
  await agent.connect()
  await Promise.all(Array.from({ length: 30 }, () => aRun(c, { workflow: 'raced' })))
  const polls = Array.from({ length: 10 }, () => agent.poll(1, 500))
  await drain(agent)
  const given = (await c.db`select run_id, epoch from placements where runner_id = ${agent.id}`).length
  const offers = (await Promise.all(polls)).flat()
  assert.deepEqual(await agent.poll(4, 200), [])
  const placed = await c.db<{ runId: string }[]>`select run_id from placements where runner_id = ${agent.id}`
  assert.equal(placed.length, given)
  assert.ok(offers.every((offer) => placed.some(({ runId }) => runId === placementOf(offer)[0])))
})
