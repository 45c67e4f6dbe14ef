import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, before, test } from 'node:test'
import { LOST_REASONS } from '@windlass/shared/model/lost-reasons.ts'
import type { Ending } from '@windlass/shared/model/ending.ts'
import type { EffectiveIsolation } from '@windlass/shared/model/runner.ts'
import type { Loss, Run } from '@windlass/shared/model/run.ts'
import { ops } from '@windlass/shared/ops/index.ts'
import { type Instance, type Placement, PROTOCOL_NAME } from '@windlass/shared/wire/agent.ts'
import { anAgent, aRunningAgent, end, type Held, type Link, placementOf, returned } from '../_kit/agent.ts'
import { takeNext, type TestAgent } from '../_kit/agent.ts'
import { ageLeases, ageOffers, SWEEPING } from '../_kit/ageing.ts'
import {
  aCoordinator,
  aCoordinatorOfItsOwn,
  aRun,
  refusal,
  runOf,
  type TestCoordinator,
  typesOf,
} from '../_kit/coordinator.ts'
import { untilNoted } from '../_kit/noted.ts'
import { silence } from '../_kit/silence.ts'
import { until, untilPolled } from '../_kit/until.ts'
import { aParkedRun, sleepFor } from '../_kit/waiting.ts'
import { aWorkflow } from '../_kit/workflow.ts'

/** Leases that are aged run out in `sweeping`; in `c` nothing is lost of which no agent speaks. */
let c: TestCoordinator
let sweeping: TestCoordinator
const agents: TestAgent[] = []

before(async () => {
  c = await aCoordinator()
  sweeping = await aCoordinatorOfItsOwn(SWEEPING)
  for (const one of [c, sweeping]) {
    await aWorkflow(one, { slug: 'any' })
    await aWorkflow(one, { slug: 'once', descriptor: { retries: { crash: 0 } } })
  }
})
after(async () => {
  for (const agent of agents) agent.close()
  await Promise.all([c.stop(), sweeping.stop()])
})

async function held(on: TestCoordinator, workflow: string): Promise<Held> {
  await aRun(on, { workflow })
  const one = await aRunningAgent(on)
  agents.push(one.agent)
  return one
}

/** What is left in the queue would go to the agent of the next test. */
async function settled(on: TestCoordinator, id: string): Promise<void> {
  await on.call(ops.runs.cancel, { run: id }).catch((error: unknown) => refusal('RUN_ALREADY_FINISHED')(error as Error))
}

async function lostBy(ending: Ending, workflow = 'any'): Promise<Run> {
  const one = await held(c, workflow)
  await one.link.report(one.offer, 2, end(ending))
  const run = await runOf(c, one.offer.run)
  await settled(c, run.id)
  return run
}

const lost = (reason: string): Ending => ({ how: 'lost', reason })

test('a reason with a character that no column takes is kept without it', async () => {
  for (const ending of [lost('a\0b'), { how: 'killed', signal: 'SIG\0SEGV', reason: 'a\0b' } as const]) {
    const run = await lostBy(ending)
    assert.equal(run.status, 'queued')
    assert.match(run.lost?.reason ?? '', /ab$/)
  }
})

test('what an agent says of a loss is told, with when it was last heard of', async () => {
  const cases: [Ending, Loss['what'], reason: RegExp][] = [
    [{ how: 'killed', signal: 'SIGSEGV' }, 'program', /^its process was ended by SIGSEGV$/],
    [lost('the bundle is incomplete'), 'program', /bundle/],
    [lost(LOST_REASONS.fenced), 'network', /connection/],
    [lost(LOST_REASONS.killed), 'daemon', /killed/],
    [lost(LOST_REASONS.shutdown), 'operator', /stopped/],
    [lost(LOST_REASONS.revoked), 'operator', /revoked/],
  ]
  for (const [ending, what, reason] of cases) {
    const since = Date.now()
    const run = await lostBy(ending)
    assert.deepEqual([run.status, run.attempt], ['queued', 2], what)
    assert.deepEqual([run.lost?.what, run.lost?.attempt, run.lost?.runner?.name], [what, 1, 'agent'])
    assert.match(run.lost!.reason, reason)
    for (const at of [run.lost!.at, run.lost!.lastAckAt!, run.lost!.lastRenewalAt!])
      assert.ok(at >= since - 5000 && at <= Date.now() + 5000, `${at} is not between`)
    assert.deepEqual((await c.call(ops.runs.why, { run: run.id })).why.losses, [run.lost])
  }
})

test('a run that somebody took away begins anew, however few crashes it may have', async () => {
  assert.equal((await lostBy({ how: 'killed', signal: 'SIGKILL' }, 'once')).status, 'failed')
  for (const reason of [LOST_REASONS.shutdown, LOST_REASONS.revoked]) {
    const run = await lostBy(lost(reason), 'once')
    assert.deepEqual([run.status, run.attempt, run.lost?.what], ['queued', 2, 'operator'])
  }
})

test('a run that only waited loses no attempt, and says that it lost its process all the same', async () => {
  const agent = await anAgent(sweeping)
  agents.push(agent)
  const crew = { c: sweeping, agent, link: await agent.connect() }
  const { run: id } = await aParkedRun(crew, { workflow: 'any' }, sleepFor())
  await ageLeases(sweeping, id)
  const run = await until('the parked process to be given up', async () => {
    const run = await runOf(sweeping, id)
    return run.lost && run
  })
  assert.deepEqual([run.status, run.attempt, run.lost?.what], ['sleeping', 1, 'unknown'])
  assert.match(run.lost!.reason, /lease ran out/)
  await settled(sweeping, id)
})

const INSTANCE: Instance = { id: 'a', previous: [], host: 'h', boot: 'b1', process: 'p1' }

async function hello(agent: TestAgent, instance: Instance, ...holds: Placement[]): Promise<Link> {
  const link = await agent.dial()
  link.send({ t: 'hello', protocol: PROTOCOL_NAME, version: 'test', slots: 4, holds, instance })
  await link.next('welcome')
  return link
}

/** A run that its agent got as this instance, and did not hold on to. */
async function lostInSilence(instance: Instance) {
  const agent = await anAgent(sweeping)
  agents.push(agent)
  const link = await hello(agent, instance)
  await aRun(sweeping, { workflow: 'any' })
  const offer = await takeNext(agent, link)
  const lossOf = async () => (await runOf(sweeping, offer.run)).lost
  await ageLeases(sweeping, offer.run)
  const first = await until('the lease to run out', lossOf)
  await settled(sweeping, offer.run)
  return { agent, first, lossOf, offer }
}

test('of a silent runner nothing is known, until it is heard of again', async () => {
  const next = { ...INSTANCE, id: randomUUID(), previous: ['a'], process: 'p2' }
  const { process: _, ...nameless } = INSTANCE
  const cases: [Instance, Loss['what']][] = [
    [INSTANCE, 'network'],
    [nameless, 'network'],
    [next, 'daemon'],
    [{ ...INSTANCE, process: 'p2' }, 'daemon'],
    [{ ...next, boot: 'b2' }, 'host'],
  ]
  for (const [back, what] of cases) {
    const { agent, first, lossOf } = await lostInSilence(INSTANCE)
    assert.deepEqual([first.what, first.attempt], ['unknown', 1])
    assert.match(first.reason, /^its agent was not heard of until the lease ran out$/)
    await untilNoted(sweeping, agent)
    await silence(sweeping, agent)
    await hello(agent, back)
    assert.deepEqual(await lossOf(), { ...first, what })
  }
})

test('a lease that runs out after the connection was closed on that side says so', async () => {
  const agent = await anAgent(sweeping)
  agents.push(agent)
  const link = await hello(agent, INSTANCE)
  await aRun(sweeping, { workflow: 'any' })
  const { run } = await takeNext(agent, link)
  link.close()
  await untilPolled('the end of its connection to be noted', async () => {
    const [row] = await sweeping.db`select disconnected_by from runners where id = ${agent.id}`
    return row?.disconnectedBy === 'agent'
  })
  await ageLeases(sweeping, run)
  const loss = await until('the lease to run out', async () => (await runOf(sweeping, run)).lost)
  assert.match(loss.reason, /lease ran out; its connection was closed there/)
  await settled(sweeping, run)
})

test('what an agent does not know any more when it is back is lost by its restart', async () => {
  const next = { ...INSTANCE, id: randomUUID(), previous: ['a'] }
  for (const [back, what] of [
    [next, 'daemon'],
    [{ ...next, boot: 'b2' }, 'host'],
  ] as const) {
    const agent = await anAgent(c)
    agents.push(agent)
    const link = await hello(agent, INSTANCE)
    await aRun(c, { workflow: 'any' })
    const { run } = await takeNext(agent, link)
    await untilNoted(c, agent)
    await silence(c, agent)
    await hello(agent, back)
    const { lost: loss } = await runOf(c, run)
    assert.deepEqual([loss?.what, loss?.reason], [what, 'its agent was started again and does not know it any more'])
    await settled(c, run)
  }
})

test('the lease of a revoked runner runs out by the hand of whoever revoked it', async () => {
  const one = await held(sweeping, 'once')
  await sweeping.db`update runner_intake set state = 'revoked', epoch = epoch + 1 where runner_id = ${one.agent.id}`
  await ageLeases(sweeping, one.offer.run)
  const run = await until('the lease to run out', async () => {
    const run = await runOf(sweeping, one.offer.run)
    return run.lost && run
  })
  assert.deepEqual(
    [run.status, run.attempt, run.lost?.what, run.lost?.reason],
    ['queued', 2, 'operator', LOST_REASONS.revoked],
  )
  await settled(sweeping, run.id)
})

test('what kept the program apart is on the run, as far as its agent says it', async () => {
  const isolation = { level: 'bubblewrap', user: 'own', cgroup: true, network: 'none' } as const
  const agent = await anAgent(c)
  agents.push(agent)
  const link = await agent.connect()
  const begun = async (...said: [] | [EffectiveIsolation]) => {
    const { id } = await aRun(c, { workflow: 'any' })
    const [offer] = await agent.poll()
    await link.accept(offer!)
    await link.report(offer!, 1, ['start', Date.now(), ...said])
    const run = await runOf(c, id)
    await link.report(offer!, 2, end(returned(1)))
    return run
  }
  assert.equal((await begun(isolation)).isolation, 'bubblewrap, own user, cgroup, no network')
  const poor: EffectiveIsolation = { level: 'process', user: 'agent', cgroup: false, network: 'host' }
  assert.equal((await begun(poor)).isolation, "process, the agent's user")
  assert.equal((await begun()).isolation, null)
})

/** A run that the agent cannot prepare. */
async function unprepared({ agent, link }: Pick<Held, 'agent' | 'link'>, blame: 'host' | 'service'): Promise<void> {
  const { id } = await aRun(c, { workflow: 'once' })
  const [offer] = await agent.poll()
  await link.accept(offer!)
  await link.report(offer!, 1, end({ how: 'unready', reason: 'the disk is full', blame }))
  assert.deepEqual((await typesOf(c, id)).slice(-2), ['run.pending', 'run.queued'])
  assert.equal((await runOf(c, id)).attempt, 1)
  await settled(c, id)
}

test('a host that fails three times gets no more for a while; where the service is to blame it goes on', async () => {
  const agent = await anAgent(c)
  agents.push(agent)
  const crew = { agent, link: await agent.connect() }
  const quarantine = async () => (await c.call(ops.runners.get, { runner: agent.id })).runner.quarantine
  for (let i = 0; i < 4; i++) await unprepared(crew, 'service')
  for (let i = 0; i < 2; i++) await unprepared(crew, 'host')
  assert.equal(await quarantine(), null)
  await unprepared(crew, 'host')
  assert.match((await quarantine())!.reason, /the disk is full/)
  const { id } = await aRun(c, { workflow: 'any' })
  assert.deepEqual(await agent.poll(1, 100), [])
  await settled(c, id)
})

test('one acceptance between them forgives offers that were not taken', async () => {
  const agent = await anAgent(sweeping)
  agents.push(agent)
  const link = await agent.connect()
  const intake = async () =>
    (
      await sweeping.db<[{ state: string; unaccepted: number }]>`
      select state, unaccepted from runner_intake where runner_id = ${agent.id}`
    )[0]
  const lapse = async (count: number) => {
    const { id } = await aRun(sweeping, { workflow: 'any' })
    const [offer] = await agent.poll()
    assert.equal(offer?.run, id)
    await ageOffers(sweeping, id)
    await until('the offer to be counted', async () => (await intake()).unaccepted === count)
    return id
  }
  const first = await lapse(1)
  const offer = await takeNext(agent, link)
  assert.equal(offer.run, first)
  assert.deepEqual({ ...(await intake()) }, { state: 'open', unaccepted: 0 })
  await link.heartbeat(1, placementOf(offer))
  await link.report(offer, 2, end(returned(1)))
  const second = await lapse(1)
  await agent.poll()
  await ageOffers(sweeping, second)
  await until('the runner to be cordoned', async () => (await intake()).state === 'cordoned')
  await settled(sweeping, second)
})
