import assert from 'node:assert/strict'
import { setImmediate } from 'node:timers/promises'
import { after, before, test, type TestContext } from 'node:test'
import { Fault } from '@windlass/shared/errors.ts'
import { newId, type OrgId } from '@windlass/shared/ids.ts'
import type { Entry, Offer } from '@windlass/shared/wire/agent.ts'
import { onMoment } from '@windlass/shared/probe.ts'
import { announce } from '@windlass/shared/test/_kit/until.ts'
import { applyBatches } from '../../engine/commit/apply.ts'
import type { JsonSchema } from '../../workflows/json-schema.ts'
import { anAgent, end, line, type Link, returned, takeNext, type TestAgent } from '../_kit/agent.ts'
import { anOrg, aCoordinator, aRun, asOwner, runOf, type TestCoordinator } from '../_kit/coordinator.ts'
import { calls, opened } from '../_kit/journal.ts'
import { until } from '../_kit/until.ts'
import { aWorkflow } from '../_kit/workflow.ts'

/** Judged in a process, as a pattern may take for ever. */
const ID: JsonSchema = {
  type: 'object',
  properties: { id: { type: 'string', pattern: '^x[a-z]*y$' } },
  required: ['id'],
}
const VALID = end(returned({ id: 'xabcy' }))

let c: TestCoordinator
let other: TestCoordinator
let agent: TestAgent
let link: Link
/** Of the same org; holds nothing. */
let stranger: Link
let otherAgent: TestAgent
let otherLink: Link

before(async () => {
  c = await aCoordinator()
  other = asOwner(c, await anOrg(c))
  for (const one of [c, other]) await aWorkflow(one, { slug: 'paid', outputSchema: ID })
  await aWorkflow(c, { slug: 'plain', outputSchema: { type: 'number' } })
  await aWorkflow(c, { slug: 'called', inputSchema: ID })
  agent = await anAgent(c, { slots: 20 })
  link = await agent.connect()
  stranger = await (await anAgent(c, { name: 'stranger' })).connect()
  otherAgent = await anAgent(other)
  otherLink = await otherAgent.connect()
})
after(() => c?.stop())

async function aRunning(workflow: string): Promise<Offer> {
  await aRun(c, { workflow })
  return takeNext(agent, link)
}

/** Counts the jobs that the processes for judging do for this org. */
function judgings(t: TestContext, orgId: OrgId = c.orgId): () => number {
  let count = 0
  t.after(onMoment(({ name, facts }) => void (count += name === 'tools.done' && facts.org === orgId ? 1 : 0)))
  return () => count
}

/** Counts the placements that the database was asked for. */
function lookUps(t: TestContext): { placements: () => number; statements: () => number } {
  const asked: number[] = []
  t.after(
    onMoment(({ name, facts }) => {
      if (name === 'group.committed' && facts.name === 'read holders') asked.push(facts.items)
    }),
  )
  return { placements: () => asked.reduce((sum, items) => sum + items, 0), statements: () => asked.length }
}

const asksSlowly = (n: number): Entry =>
  opened(n, {
    for: 'input',
    prompt: 'Go on?',
    schemaText: JSON.stringify({ type: 'string', pattern: '^(a|a)*$' }),
    timeoutMs: 60_000,
    onTimeoutText: JSON.stringify(`${'a'.repeat(40)}!${n}`),
  })

/** More than the two seconds that a run has. */
const questions = () => Array.from({ length: 12 }, (_, n) => asksSlowly(n + 1))

const callsIn = (environment: string, n: number): Entry =>
  opened(n, { for: 'child', workflow: 'plain', environment, inputText: 'null', version: null, tags: [], priority: 0 })

/** All that a process would have to judge. */
const SAID: Readonly<Record<string, () => Entry[]>> = {
  questions,
  'an output': () => [line('x'), VALID],
  'a call': () => [line('x'), calls(1, 'called', { id: 'xabcy' })],
}

for (const [what, entries] of Object.entries(SAID))
  test(`${what} of a run that another agent holds is stale, and nothing of it is judged`, async (t) => {
    const offer = await aRunning('paid')
    const judged = judgings(t)
    for (const epoch of [offer.epoch, offer.epoch + 1, 0])
      assert.deepEqual(await stranger.report({ run: offer.run, epoch }, 2, ...entries()), { kind: 'stale' })
    assert.equal(judged(), 0)
    assert.deepEqual(await link.report(offer, 2, VALID), { kind: 'ack', seq: 2 })
    assert.equal((await runOf(c, offer.run)).status, 'completed')
  })

test('the same is said of runs that nobody holds, that never were, and of another org', async (t) => {
  const ended = await aRunning('paid')
  await link.report(ended, 2, VALID)
  await aRun(other, { workflow: 'paid' })
  const foreign = await takeNext(otherAgent, otherLink)
  const [ours, theirs] = [judgings(t), judgings(t, other.orgId)]
  for (const { run, epoch } of [ended, foreign, { run: newId('run'), epoch: 1 }])
    for (const entries of Object.values(SAID))
      assert.deepEqual(await stranger.report({ run, epoch }, 2, ...entries()), { kind: 'stale' })
  assert.deepEqual([ours(), theirs()], [0, 0])
  await otherLink.report(foreign, 2, VALID)
  assert.equal((await runOf(other, foreign.run)).status, 'completed')
})

test('nothing is looked up for calls and ends of runs that were made up', async (t) => {
  const targets = t.mock.method(c.deps.targets, 'resolve')
  const environments = t.mock.method(c.deps.environments, 'need')
  const asked = lookUps(t)
  const said = [callsIn('nowhere', 1), callsIn('elsewhere', 2)]
  assert.deepEqual(await stranger.report({ run: newId('run'), epoch: 1 }, 2, ...said), { kind: 'stale' })
  assert.deepEqual([targets.mock.callCount(), environments.mock.callCount(), asked.placements()], [0, 0, 1])
  assert.deepEqual(await stranger.report({ run: newId('run'), epoch: 1 }, 2, end(returned(1))), { kind: 'stale' })
  assert.equal(asked.placements(), 2)
})

test('what the runs of an org call is looked up for two of them at a time', async (t) => {
  const offers: Offer[] = []
  for (let count = 0; count < 5; count++) offers.push(await aRunning('plain'))
  const held = Promise.withResolvers<void>()
  let begun = 0
  let underWay = 0
  let most = 0
  t.mock.method(c.deps.environments, 'need', async () => {
    begun++
    most = Math.max(most, ++underWay)
    announce()
    await held.promise
    underWay--
    throw new Fault('VALIDATION_FAILED')
  })
  const asked = lookUps(t)
  const reports = offers.map((offer, n) => link.report(offer, 2, callsIn(`e${n}`, 1), end(returned(1))))
  await until('all to be read', () => asked.placements() === 5 && begun >= 2)
  // All that may begin has begun.
  for (let turns = 0; turns < 10; turns++) await setImmediate()
  assert.equal(begun, 2)
  held.resolve()
  assert.deepEqual(
    await Promise.all(reports),
    offers.map(() => ({ kind: 'ack', seq: 3 })),
  )
  assert.deepEqual([begun, most], [5, 2])
})

test('who held a run before has nothing judged any more', async (t) => {
  const first = await anAgent(c, { name: 'first' })
  await aRun(c, { workflow: 'paid' })
  const lost = await takeNext(first, await first.connect())
  // It was started again and knows of nothing.
  const again = await first.connect()
  const offer = await takeNext(agent, link)
  assert.deepEqual([offer.run, offer.epoch], [lost.run, lost.epoch + 1])
  const judged = judgings(t)
  for (const epoch of [lost.epoch, offer.epoch])
    assert.deepEqual(await again.report({ run: lost.run, epoch }, 2, ...questions()), { kind: 'stale' })
  assert.equal(judged(), 0)
  await link.report(offer, 2, VALID)
  assert.equal((await runOf(c, offer.run)).status, 'completed')
})

// An agent may guess the next epoch of a run, and get it while its guess waits for the commit.
test('what was said before its runner held the run is stale, though it holds it by now', async () => {
  const offer = await aRunning('paid')
  const { run, epoch } = offer
  const said = { run, epoch, first: 2, entries: [VALID], runnerId: agent.id, orgId: c.orgId }
  const unjudged = { ...said, commands: new Map(), outputs: new Map(), isUnheld: true }
  assert.deepEqual(await applyBatches(c.deps, [unjudged]), [{ kind: 'stale' }])
  await link.report(offer, 2, VALID)
  assert.equal((await runOf(c, run)).status, 'completed')
})

test('an end that comes again after it was taken is acknowledged and not judged again', async (t) => {
  const offer = await aRunning('paid')
  await link.report(offer, 2, VALID)
  const judged = judgings(t)
  assert.deepEqual(await link.report(offer, 2, VALID), { kind: 'ack', seq: 2 })
  assert.equal(judged(), 0)
})

test('who holds a run is asked once for a batch, and only where something is judged or looked up', async (t) => {
  const [plain, asking] = [await aRunning('plain'), await aRunning('paid')]
  const asked = lookUps(t)
  assert.deepEqual(await link.report(plain, 2, line('x'), end(returned(1))), { kind: 'ack', seq: 3 })
  assert.equal(asked.statements(), 0)
  await link.report(asking, 2, asksSlowly(1), asksSlowly(2), VALID)
  assert.deepEqual([asked.statements(), asked.placements()], [1, 1])
})

test('all who ask at the same moment share a statement', async (t) => {
  const offers = [await aRunning('plain'), await aRunning('plain')]
  const asked = lookUps(t)
  const ask = ({ run, epoch }: Offer, runnerId = agent.id) =>
    c.deps.holders.add({ runId: run, epoch, runnerId, orgId: c.orgId })
  const answers = await Promise.all([...offers.map((offer) => ask(offer)), ask(offers[0]!, otherAgent.id)])
  assert.deepEqual(answers, [true, true, false])
  assert.deepEqual([asked.statements(), asked.placements()], [1, 3])
  for (const offer of offers) await link.report(offer, 2, end(returned(1)))
})
