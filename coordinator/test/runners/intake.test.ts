import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { ops } from '@windlass/shared/ops/index.ts'
import {
  closeByAgent,
  cordonBySystem,
  liftOldCordons,
  liftOnHello,
  noteAccepted,
  noteFailure,
  noteUnaccepted,
} from '../../runners/intake.ts'
import { liftCordons } from '../../runners/store-cordons.ts'
import { anAgent, anInstance, type TestAgent } from '../_kit/agent.ts'
import { entriesBy } from '../_kit/audit.ts'
import { aCoordinatorOfItsOwn, anOrg, aRun, asOwner, runOf, type TestCoordinator } from '../_kit/coordinator.ts'
import { aWorkflow } from '../_kit/workflow.ts'

let c: TestCoordinator
let poolId: string
const agents: TestAgent[] = []

before(async () => {
  c = await aCoordinatorOfItsOwn()
  poolId = (await c.call(ops.pools.create, { org: c.org, name: 'own' })).runnerPool.id
  await aWorkflow(c, { slug: 'own', descriptor: { pool: 'own' } })
})
after(async () => {
  for (const agent of agents) agent.close()
  await c.stop()
})

async function aRunner(): Promise<TestAgent> {
  const agent = await anAgent(c, { pool: poolId })
  agents.push(agent)
  return agent
}

const runnerOf = async ({ id }: TestAgent) => (await c.call(ops.runners.get, { runner: id })).runner
const stateOf = async (agent: TestAgent) => (await runnerOf(agent)).intake.state
/** A start of an agent, and the one after it. */
function startedTwice() {
  const instance = anInstance()
  return { instance, next: anInstance({ previous: [instance.id], host: instance.host }) }
}
const leave = { reason: 'SIGTERM', deadlineMs: 60_000 }

test('an agent that leaves gets nothing more, and what it has not taken goes back at once without an attempt', async () => {
  const agent = await aRunner()
  const link = await agent.connect()
  const { id } = await aRun(c, { workflow: 'own' })
  await agent.poll()
  assert.equal((await runOf(c, id)).status, 'pending')
  const [entry] = await entriesBy(c, () => closeByAgent(c.deps, agent, leave))
  assert.deepEqual([entry?.action, entry?.via, entry?.actor.id], ['runners.drain', 'runner', agent.id])
  const run = await runOf(c, id)
  assert.deepEqual([run.status, run.attempt], ['queued', 1])
  const { intake } = await runnerOf(agent)
  assert.deepEqual([intake.state, intake.by?.kind, intake.reason], ['drained', 'agent', 'SIGTERM'])
  assert.deepEqual(await agent.poll(1, 100), [])
  assert.equal((await link.next('intake')).intake.epoch, 1)
  await c.call(ops.runs.cancel, { run: id })
})

test('the drain of an agent ends with its next start, not with its next connection', async () => {
  const agent = await aRunner()
  const { instance, next } = startedTwice()
  await agent.connect([], { instance })
  await closeByAgent(c.deps, agent, { ...leave, instance: instance.id })
  await agent.connect([], { instance })
  assert.equal(await stateOf(agent), 'drained')
  const entries = await entriesBy(c, () => agent.connect([], { instance: next }))
  assert.deepEqual(
    entries.map(({ action, actor }) => [action, actor.kind]),
    [['runners.resume', 'system']],
  )
  assert.equal(await stateOf(agent), 'open')
})

test('the drain of an agent whose start could not be written down ends with its next process', async () => {
  const agent = await aRunner()
  const first = anInstance({ process: 'first' })
  await agent.connect([], { instance: first })
  await closeByAgent(c.deps, agent, { ...leave, instance: first.id })
  await agent.connect([], { instance: first })
  assert.equal(await stateOf(agent), 'drained')
  const second = { ...first, process: 'second' }
  await agent.connect([], { instance: second })
  assert.equal(await stateOf(agent), 'open')
  await closeByAgent(c.deps, agent, { ...leave, instance: first.id })
  for (const late of [first, second]) assert.equal(await liftOnHello(c.deps, agent, late), false)
})

test('a hello that was held up ends neither the drain of its own start nor that of the next', async () => {
  const agent = await aRunner()
  const { instance, next } = startedTwice()
  for (const start of [instance, next]) {
    await agent.connect([], { instance: start })
    await closeByAgent(c.deps, agent, { ...leave, instance: start.id })
    for (const late of [instance, next, undefined]) assert.equal(await liftOnHello(c.deps, agent, late), false)
    assert.equal(await stateOf(agent), 'drained')
  }
})

test('a start that another one has followed closes nothing and gives nothing back', async () => {
  const agent = await aRunner()
  const { instance: first, next } = startedTwice()
  await agent.connect([], { instance: first })
  await agent.connect([], { instance: next })
  const { id } = await aRun(c, { workflow: 'own' })
  await agent.poll()
  await closeByAgent(c.deps, agent, { ...leave, instance: first.id })
  assert.equal(await stateOf(agent), 'open')
  assert.equal((await runOf(c, id)).status, 'pending')
  await closeByAgent(c.deps, agent, { ...leave, instance: next.id })
  assert.equal(await stateOf(agent), 'drained')
  await c.call(ops.runs.cancel, { run: id })
})

test('what a person has closed outlives the agent, however it comes and goes', async () => {
  for (const verb of ['cordon', 'drain'] as const) {
    const agent = await aRunner()
    const { runner } = await c.call(ops.runners[verb], { runner: agent.id, reason: 'mine' })
    await closeByAgent(c.deps, agent, leave)
    for (const more of [{}, { instance: anInstance() }]) await agent.connect([], more)
    assert.deepEqual((await runnerOf(agent)).intake, runner.intake)
  }
})

test('a person who cordons a runner whose agent is leaving keeps it closed after its next start', async () => {
  const agent = await aRunner()
  await closeByAgent(c.deps, agent, leave)
  await c.call(ops.runners.cordon, { runner: agent.id })
  await agent.connect([], { instance: anInstance() })
  const { intake } = await runnerOf(agent)
  assert.deepEqual([intake.state, intake.by?.kind, intake.reason], ['drained', 'caller', 'SIGTERM'])
})

test('two polls in a row whose offers are not accepted cordon the runner, until its agent says hello', async () => {
  const agent = await aRunner()
  await noteUnaccepted(c.deps, [agent.id, agent.id])
  assert.equal(await stateOf(agent), 'open', 'one poll answer is one, however many offers were in it')
  await noteAccepted(c.deps, [agent.id])
  await noteUnaccepted(c.deps, [agent.id])
  assert.equal(await stateOf(agent), 'open', 'one that was accepted between them ends the row')
  const [entry] = await entriesBy(c, () => noteUnaccepted(c.deps, [agent.id]))
  assert.deepEqual([entry?.action, entry?.actor.kind, entry?.via], ['runners.cordon', 'system', 'system'])
  const { intake } = await runnerOf(agent)
  assert.deepEqual([intake.state, intake.by?.kind], ['cordoned', 'system'])
  assert.match(intake.reason, /2 offers in a row were not accepted/)
  assert.equal(await liftOnHello(c.deps, agent, undefined), true)
  await noteUnaccepted(c.deps, [agent.id])
  assert.equal(await stateOf(agent), 'open', 'the count begins anew')
})

test('a cordon of ours ends after a minute, and one by a person does not', async () => {
  const [ours, theirs] = [await aRunner(), await aRunner()]
  await cordonBySystem(c.deps, [ours.id], 'silent')
  await c.call(ops.runners.cordon, { runner: theirs.id })
  await liftOldCordons(c.deps)
  assert.equal(await stateOf(ours), 'cordoned', 'it is new')
  const [entry] = await entriesBy(c, async () => {
    await c.db`update runner_intake set since = now() - interval '61 s' where runner_id in (${ours.id}, ${theirs.id})`
    await liftOldCordons(c.deps)
  })
  assert.deepEqual([entry?.action, entry?.target.id, entry?.actor.kind], ['runners.resume', ours.id, 'system'])
  assert.match((await runnerOf(ours)).intake.reason, /60 s have passed/)
  assert.deepEqual([await stateOf(ours), await stateOf(theirs)], ['open', 'cordoned'])
})

/** How long the runner is kept from work, in whole minutes, by a look at each. */
async function minutesClosed(agent: TestAgent): Promise<number> {
  for (let minutes = 1; minutes <= 10; minutes++) {
    await c.db`
      update runner_intake set since = now() - ${minutes} * interval '1 minute' where runner_id = ${agent.id}`
    await liftOldCordons(c.deps)
    if ((await stateOf(agent)) === 'open') return minutes
  }
  return Infinity
}

test('a runner that is cordoned by us again and again stays so for longer each time, up to eight minutes', async () => {
  const agent = await aRunner()
  const cordoned = () => cordonBySystem(c.deps, [agent.id], 'silent')
  for (const minutes of [1, 2, 4, 8, 8]) {
    await cordoned()
    assert.equal(await minutesClosed(agent), minutes)
  }
  assert.match((await runnerOf(agent)).intake.reason, /480 s have passed/)
  // It has had work for long.
  await c.db`update runner_intake set since = now() - interval '11 minutes' where runner_id = ${agent.id}`
  await cordoned()
  assert.equal(await minutesClosed(agent), 1)
  await cordoned()
  await c.call(ops.runners.resume, { runner: agent.id })
  await cordoned()
  assert.equal(await minutesClosed(agent), 1, 'a person has forgiven it')
  await cordoned()
  await closeByAgent(c.deps, agent, leave)
  await agent.connect([], { instance: anInstance() })
  assert.equal(await stateOf(agent), 'open')
  await cordoned()
  assert.equal(await minutesClosed(agent), 1, 'this start has missed nothing before')
})

test('orgs take turns when cordons of ours are lifted, and nobody waits for a row that is held', async (t) => {
  const asleep = await aCoordinatorOfItsOwn({ SWEEP_MS: 3_600_000 })
  t.after(() => asleep.stop())
  const second = asOwner(asleep, await anOrg(asleep))
  const ids: string[] = []
  for (const each of [asleep, asleep, asleep, second]) {
    const agent = await anAgent(each)
    agents.push(agent)
    await cordonBySystem(asleep.deps, [agent.id], 'silent')
    ids.push(agent.id)
  }
  await asleep.db`update runner_intake set since = now() - interval '61 s'`
  const [one, two, three, other] = ids
  const lifted = await asleep.db.begin((tx) => liftCordons(tx, { name: 'coordinator', limit: 2 }))
  assert.deepEqual(
    lifted.map(({ runnerId }) => runnerId),
    [one, other],
  )
  const look = () => entriesBy(asleep, () => liftOldCordons(asleep.deps))
  const liftedBy = (entries: Awaited<ReturnType<typeof look>>) => entries.map(({ target }) => target.id)
  await asleep.db.begin(async (tx) => {
    await tx`select from runner_intake where runner_id = ${two!} for share`
    assert.deepEqual(liftedBy(await look()), [three])
  })
  assert.deepEqual(liftedBy(await look()), [two])
})

test('three failures within ten minutes quarantine a runner, older ones do not count', async () => {
  const agent = await aRunner()
  await noteFailure(c.deps, agent.id)
  await noteFailure(c.deps, agent.id)
  await c.db`update runner_intake set failures = array[now() - interval '11 minutes', now()] where runner_id = ${agent.id}`
  await noteFailure(c.deps, agent.id)
  assert.equal((await runnerOf(agent)).quarantine, null)
  const [entry] = await entriesBy(c, () => noteFailure(c.deps, agent.id, 'no space left on device'))
  assert.deepEqual([entry?.action, entry?.actor.kind], ['runners.quarantine', 'system'])
  const { quarantine: q, intake } = await runnerOf(agent)
  assert.match(q?.reason ?? '', /3 times within ten minutes, at last: no space left/)
  assert.deepEqual([q!.until - q!.since, intake.state, intake.epoch], [600_000, 'open', 0])
  await aRun(c, { workflow: 'own' })
  assert.deepEqual(await agent.poll(1, 100), [])
  await c.db`update runner_intake set quarantined_until = now() where runner_id = ${agent.id}`
  assert.equal((await agent.poll(1)).length, 1)
})

test('many failures at once quarantine once', async () => {
  const agent = await aRunner()
  const entries = await entriesBy(c, () => Promise.all(Array.from({ length: 8 }, () => noteFailure(c.deps, agent.id))))
  assert.deepEqual(
    entries.map(({ action }) => action),
    ['runners.quarantine'],
  )
})

test('the quarantine of a runner outlives its agent, and ends when a person resumes it', async () => {
  const agent = await aRunner()
  for (let i = 0; i < 3; i++) await noteFailure(c.deps, agent.id)
  await closeByAgent(c.deps, agent, leave)
  await agent.connect([], { instance: anInstance() })
  assert.equal(await stateOf(agent), 'open')
  await cordonBySystem(c.deps, [agent.id], 'silent')
  assert.equal(await liftOnHello(c.deps, agent, undefined), true)
  assert.notEqual((await runnerOf(agent)).quarantine, null)
  assert.equal((await c.call(ops.runners.resume, { runner: agent.id })).runner.quarantine, null)
})

test('of two coordinators that cordon at once one writes it', async () => {
  const agent = await aRunner()
  const entries = await entriesBy(c, () =>
    Promise.all(Array.from({ length: 10 }, () => cordonBySystem(c.deps, [agent.id], 'twice'))),
  )
  assert.equal(entries.length, 1)
  assert.equal((await runnerOf(agent)).intake.epoch, 1)
})

test('the metrics count what was closed by us, and runners by their state', async () => {
  const text = await (await fetch(`${c.url}/metrics`)).text()
  const of = (name: string) => Number(new RegExp(`^${name.replaceAll(/[{}]/g, '\\$&')} (\\d+)`, 'm').exec(text)?.[1])
  assert.ok(of('windlass_runners_closed_total{how="cordon"}') >= 2)
  assert.ok(of('windlass_runners_closed_total{how="quarantine"}') >= 2)
  assert.ok(of('windlass_offers_unaccepted_total') >= 4)
  const [{ open }] = await c.db<
    [{ open: number }]
  >`select count(*)::int as open from runner_intake where state = 'open'`
  assert.equal(of('windlass_runners{state="open"}'), open)
  assert.equal(of('windlass_runners{state="revoked"}'), 0)
})
