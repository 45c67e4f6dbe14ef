import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { RunId } from '@windlass/shared/ids.ts'
import { ops } from '@windlass/shared/ops/index.ts'
import type { OnDeadline } from '@windlass/shared/model/runner.ts'
import { moment } from '@windlass/shared/test/_kit/until.ts'
import { dueDrains } from '../../runners/store-intake.ts'
import { anAgent, end, placementOf, returned, takeNext, type TestAgent } from '../_kit/agent.ts'
import { entriesOf } from '../_kit/audit.ts'
import { anOrg, aCoordinatorOfItsOwn, aRun, asOwner, runOf, type TestCoordinator } from '../_kit/coordinator.ts'
import { silence } from '../_kit/silence.ts'
import { until, untilPolled } from '../_kit/until.ts'
import { aParkedRun, call, open, question } from '../_kit/waiting.ts'
import { aWorkflow } from '../_kit/workflow.ts'

let c: TestCoordinator
const agents: TestAgent[] = []

before(async () => {
  c = await aCoordinatorOfItsOwn({ SWEEP_MS: 50 })
  await c.another()
  await aWorkflow(c, { slug: 'elsewhere', descriptor: { pool: 'default' } })
})
after(async () => {
  for (const agent of agents) agent.close()
  await c.stop()
})

async function aCrew(pool: string) {
  const { runnerPool } = await c.call(ops.pools.create, { org: c.org, name: pool })
  await aWorkflow(c, { slug: pool, descriptor: { pool } })
  const agent = await anAgent(c, { pool: runnerPool.id, slots: 8 })
  agents.push(agent)
  return { c, agent, link: await agent.connect() }
}

const drain = ({ id }: TestAgent, onDeadline: OnDeadline) =>
  c.call(ops.runners.drain, { runner: id, deadlineMs: 1000, onDeadline, reason: 'new kernel' })

const deadlinesOf = ({ id }: TestAgent) => entriesOf(c, { target: id, action: ['runners.drainDeadline'] })

/** As if the time of the drain were up. */
const pass = ({ id }: TestAgent) => c.db`update runner_intake set deadline_at = now() where runner_id = ${id}`

test('at the deadline what executes is cancelled, with all that it has called, once for all coordinators', async () => {
  const crew = await aCrew('cancelled')
  const { agent, link } = crew
  const ids: RunId[] = []
  for (let i = 0; i < 3; i++) {
    await aRun(c, { workflow: 'cancelled' })
    ids.push((await takeNext(agent, link)).run)
  }
  await c.call(ops.runs.trigger, { org: c.org, workflow: 'cancelled' })
  const parent = await takeNext(agent, link)
  await link.report(parent, 2, open(1, call('elsewhere')))
  await drain(agent, 'cancel')
  await pass(agent)
  await until('the agent to be asked to stop them', async () => {
    const { cancel } = await link.heartbeat(1, ...ids.map((run) => placementOf({ run, epoch: 1 })), placementOf(parent))
    return (
      cancel.length === 4 &&
      cancel.every((order) => /drain of the runner agent .* deadline: new kernel/.test(order.reason))
    )
  })
  const { runs: children } = await c.call(ops.runs.children, { run: parent.run })
  await until('its child to be cancelled', async () => (await runOf(c, children[0]!.id)).status === 'cancelled')
  const [entry, ...more] = await deadlinesOf(agent)
  assert.deepEqual(more, [])
  assert.deepEqual([entry?.actor.kind, entry?.via], ['system', 'system'])
  assert.deepEqual(entry?.after, { cancelled: [...ids, parent.run].sort() })
})

test('what may have ended at an agent that is out of reach is not cancelled', async () => {
  const { agent, link } = await aCrew('silent')
  await aRun(c, { workflow: 'silent' })
  const offer = await takeNext(agent, link)
  await drain(agent, 'cancel')
  await silence(c, agent)
  await pass(agent)
  // Of each coordinator one that began after that.
  for (let looks = 0; looks < 4; looks++) await moment('sweep.done', ({ of }) => of === 'deadlines')
  await link.report(offer, 2, end(returned('done')))
  assert.equal((await runOf(c, offer.run)).status, 'completed')
  assert.deepEqual(await deadlinesOf(agent), [])
})

test('a deadline leaves what executes where it is to be left, and what has not begun or only waits', async () => {
  const left = await aCrew('left')
  await aRun(c, { workflow: 'left' })
  const offer = await takeNext(left.agent, left.link)
  await drain(left.agent, 'leave')
  const waiting = await aCrew('waiting')
  const parked = await aParkedRun(waiting, { workflow: 'waiting' }, question())
  await aRun(c, { workflow: 'waiting' })
  const [offered] = await waiting.agent.poll(1)
  await drain(waiting.agent, 'cancel')
  // Of somebody else, as a sign that the deadlines have been looked at since.
  const third = await aCrew('third')
  await aRun(c, { workflow: 'third' })
  const sign = await takeNext(third.agent, third.link)
  await drain(third.agent, 'cancel')
  for (const { agent } of [left, waiting, third]) await pass(agent)
  await until('the third to be cancelled', async () => (await runOf(c, sign.run)).status === 'cancelling')
  assert.deepEqual(
    [(await runOf(c, offer.run)).status, (await runOf(c, parked.run)).status, (await runOf(c, offered!.run)).status],
    ['running', 'awaiting_input', 'pending'],
  )
  assert.deepEqual([await deadlinesOf(left.agent), await deadlinesOf(waiting.agent)], [[], []])
  // What was offered and begins after all is ended then.
  await waiting.link.accept(offered!)
  await until('the late one to be cancelled', async () => (await runOf(c, offered!.run)).status === 'cancelling')
})

test('a deadline that passed while no coordinator was there is acted upon by the next one', async () => {
  const asleep = await aCoordinatorOfItsOwn({ SWEEP_MS: 3_600_000 })
  await aWorkflow(asleep, { slug: 'any' })
  const agent = await anAgent(asleep)
  agents.push(agent)
  await aRun(asleep, { workflow: 'any' })
  const link = await agent.connect()
  const offer = await takeNext(agent, link)
  await asleep.call(ops.runners.drain, { runner: agent.id, deadlineMs: 1000, onDeadline: 'cancel' })
  await asleep.db`update runner_intake set deadline_at = now() where runner_id = ${agent.id}`
  await asleep.another({ SWEEP_MS: 50 })
  await untilPolled('it to be cancelled', async () => {
    await link.heartbeat(1, placementOf(offer))
    return (await runOf(asleep, offer.run)).status === 'cancelling'
  })
  await asleep.stop()
})

test('a drain that was undone in time cancels nothing', async () => {
  const { agent, link } = await aCrew('undone')
  await aRun(c, { workflow: 'undone' })
  const offer = await takeNext(agent, link)
  await drain(agent, 'cancel')
  await c.call(ops.runners.resume, { runner: agent.id })
  await pass(agent)
  const sign = await aCrew('sign')
  await aRun(c, { workflow: 'sign' })
  const other = await takeNext(sign.agent, sign.link)
  await drain(sign.agent, 'cancel')
  await pass(sign.agent)
  await until('the sign', async () => (await runOf(c, other.run)).status === 'cancelling')
  assert.equal((await runOf(c, offer.run)).status, 'running')
  await link.report(offer, 2, end(returned(1)))
})

test('a deadline does not wait for what the runs of another have called', async (t) => {
  const alone = await aCoordinatorOfItsOwn({ SWEEP_MS: 50 })
  t.after(() => alone.stop())
  const { mock } = t.mock.method(alone.deps.log, 'warn', () => {})
  await aWorkflow(alone, { slug: 'any' })
  const [parents, others] = [await anAgent(alone), await anAgent(alone)]
  agents.push(parents, others)
  const links = [await parents.connect(), await others.connect()] as const
  await aRun(alone, { workflow: 'any' })
  const parent = await takeNext(parents, links[0])
  await aRun(alone, { workflow: 'any' })
  const sign = await takeNext(others, links[1])
  await links[0].report(parent, 2, open(1, call('any')))
  const { runs: children } = await alone.call(ops.runs.children, { run: parent.run })
  const child = children[0]!.id
  for (const { id } of [parents, others])
    await alone.call(ops.runners.drain, { runner: id, deadlineMs: 3_600_000, onDeadline: 'cancel' })
  await alone.db.begin(async (tx) => {
    await tx`select from runs where id = ${child} for update`
    await alone.db`update runner_intake set deadline_at = now()`
    await until('the other to be cancelled', async () => (await runOf(alone, sign.run)).status === 'cancelling')
    assert.equal((await runOf(alone, parent.run)).status, 'cancelling')
  })
  // Whoever waits for a lock gives up after ten seconds, and says so.
  assert.ok(!mock.calls.some(({ arguments: [name] }) => name === 'deadline.failed'))
  await until('its child to be cancelled', async () => (await runOf(alone, child)).status === 'cancelled')
})

test('orgs take turns at deadlines that are due', async (t) => {
  const asleep = await aCoordinatorOfItsOwn({ SWEEP_MS: 3_600_000 })
  t.after(() => asleep.stop())
  const second = asOwner(asleep, await anOrg(asleep))
  for (const each of [asleep, second]) await aWorkflow(each, { slug: 'any' })
  const due: string[] = []
  for (const each of [asleep, asleep, asleep, second]) {
    const agent = await anAgent(each)
    agents.push(agent)
    await aRun(each, { workflow: 'any' })
    await takeNext(agent, await agent.connect())
    await each.call(ops.runners.drain, { runner: agent.id, deadlineMs: 3_600_000, onDeadline: 'cancel' })
    due.push(agent.id)
  }
  await asleep.db`update runner_intake set deadline_at = now()`
  const [one, two, three, other] = due
  const drains = await dueDrains(asleep.db, asleep.db`false`)
  assert.deepEqual(
    drains.map(({ runnerId }) => runnerId),
    [one, other, two, three],
  )
})
