// A run of which nothing was executed goes back as it came, whatever its retries allow; what may have begun does not.
import assert from 'node:assert/strict'
import { after, afterEach, before, test } from 'node:test'
import { LOST_REASONS, lostWhile } from '@windlass/shared/model/lost-reasons.ts'
import type { RunId } from '@windlass/shared/ids.ts'
import type { Run } from '@windlass/shared/model/run.ts'
import { ops } from '@windlass/shared/ops/index.ts'
import type { Entry, Offer } from '@windlass/shared/wire/agent.ts'
import { createReturns } from '../../dispatch/returns.ts'
import { applyBatches } from '../../engine/commit/apply.ts'
import type { ReadBatch } from '../../engine/rules/batch.ts'
import { anAgent, end, type Link, PATIENT_MS, placementOf, returned, start, type TestAgent } from '../_kit/agent.ts'
import { ageDelays } from '../_kit/ageing.ts'
import { aCoordinator, aRun, runOf, type TestCoordinator } from '../_kit/coordinator.ts'
import { evicted, parked, sleeps } from '../_kit/journal.ts'
import { journalCrew } from '../_kit/journal-crew.ts'
import { aWorkflow } from '../_kit/workflow.ts'

let c: TestCoordinator
let agent: TestAgent
let link: Link

before(async () => {
  c = await aCoordinator()
  await aWorkflow(c, { slug: 'once', descriptor: { retries: { crash: 0, fence: 0 } } })
  agent = await anAgent(c)
  link = await agent.connect()
})
/** What is left in the queue would go to the agent of the next test, and two that were not begun let it rest. */
afterEach(async () => {
  const open = await c.db<{ id: RunId }[]>`select id from runs where org_id = ${c.orgId} and finished_at is null`
  for (const { id } of open) await c.call(ops.runs.cancel, { run: id })
  await c.call(ops.runners.resume, { runner: agent.id })
})
after(async () => {
  agent.close()
  await c.stop()
})

const { begun } = journalCrew(() => ({ c, agent, link }), 'once')
const KILLED = end({ how: 'lost', reason: LOST_REASONS.killed })
/** As agents say it that know that its program had not begun. */
const UNBEGUN = end({ how: 'unready', reason: lostWhile('killed', 'its program had not begun') })

async function anOffer(run?: string): Promise<Offer> {
  const id = run ?? (await aRun(c, { workflow: 'once' })).id
  const [offer] = await agent.poll()
  assert.equal(offer?.run, id)
  return offer
}

/** The agent is started again, and says this of what it had written down before it accepted. */
async function reportedAfterStart(offer: Offer, ...entries: Entry[]): Promise<void> {
  link = await agent.connect([placementOf(offer)])
  await link.report(offer, 1, ...entries)
}

async function isBack({ run: id }: Offer): Promise<void> {
  const { status, attempt, startedAt, lost } = await runOf(c, id)
  assert.deepEqual({ status, attempt, startedAt, lost }, { status: 'queued', attempt: 1, startedAt: null, lost: null })
  // In the queue, not before its time.
  assert.equal((await agent.poll())[0]?.run, id)
}

async function failure({ run }: Offer): Promise<Pick<Run, 'status'> & { code: string | undefined }> {
  const { status, error } = await runOf(c, run)
  return { status, code: error?.code }
}

for (const why of ['shutdown', 'fenced', 'unconfirmed', 'revoked'] as const)
  test(`what an agent has not begun goes back at once: ${why}`, async () => {
    const offer = await anOffer()
    await link.accept(offer)
    await link.report(offer, 1, end({ how: 'unready', reason: LOST_REASONS[why] }))
    await isBack(offer)
  })

/** A run that is led back to where it waits. */
async function aReplay(): Promise<Offer> {
  const first = await begun()
  await link.report(first, 2, sleeps(1, 0), parked('sleep'), evicted())
  const offer = await anOffer(first.run)
  assert.equal(offer.replay, true)
  return offer
}

/** For how long it was put off. */
async function waitOf(id: string): Promise<number | undefined> {
  const [row] = await c.db<{ waitMs: number }[]>`
    select round(extract(epoch from t.due_at - r.queued_at) * 1000)::int as wait_ms
    from timers t join runs r on r.id = t.run_id
    where t.run_id = ${id} and t.kind = 'enqueue'`
  return row?.waitMs
}

async function stateOf(id: string) {
  const [row] = await c.db`select status, attempt, cut_replays from runs where id = ${id}`
  return { ...row }
}

for (const [how, killed] of Object.entries({ lost: KILLED, unready: UNBEGUN })) {
  test(`what an agent had not accepted when it was killed goes back at once: ${how}`, async () => {
    // One that is accepted makes up for those that were not.
    await begun()
    const offer = await anOffer()
    await reportedAfterStart(offer, killed)
    await isBack(offer)
  })

  test(`a run that goes on waits as before, when its agent had not accepted it: ${how}`, async () => {
    const { run } = await aReplay().then(async (offer) => (await reportedAfterStart(offer, killed), offer))
    assert.deepEqual(await stateOf(run), { status: 'sleeping', attempt: 1, cutReplays: 0 })
    // At once: a replay that was cut off waits before the next.
    assert.equal((await anOffer(run)).replay, true)
  })
}

test('what an agent had accepted and not begun when it was killed goes back at once', async () => {
  const offer = await anOffer()
  await link.accept(offer)
  await reportedAfterStart(offer, UNBEGUN)
  await isBack(offer)
})

/** Its agent is killed before it begins, after as many times as are said. Answers for how long it waits. */
async function killedAgain(id: string, times: number): Promise<number | undefined> {
  await c.db`update runs set cut_replays = ${times} where id = ${id}`
  await ageDelays(c, id)
  const [offer] = await agent.poll(1, PATIENT_MS)
  await link.accept(offer!)
  await reportedAfterStart(offer!, UNBEGUN)
  return waitOf(id)
}

test('what was killed time and again before it began waits longer each time, and comes to an end', async () => {
  const { id } = await aRun(c, { workflow: 'once' })
  assert.equal(await killedAgain(id, 0), undefined)
  assert.equal(await killedAgain(id, 7), 7_000)
  assert.equal(await killedAgain(id, 19), 19_000)
  assert.equal((await runOf(c, id)).attempt, 1)
  await killedAgain(id, 20)
  const { status, error } = await runOf(c, id)
  assert.deepEqual([status, error?.code], ['failed', 'RUN_CRASHED'])
  assert.match(error!.message, /^The run was never heard to start, and was lost 21 times; the last time the agent was/)
})

test('a run that was given out many times for other reasons does not come to an end for that', async () => {
  const { id } = await aRun(c, { workflow: 'once' })
  // As one that was led back from hundreds of sleeps and then threw, or waited for hours for what nobody could prepare.
  await c.db`update runs set epoch = 600 where id = ${id}`
  await isBack(await offeredAndKilled(id))
})

async function offeredAndKilled(id: string): Promise<Offer> {
  const offer = await anOffer(id)
  await link.accept(offer)
  await reportedAfterStart(offer, UNBEGUN)
  return offer
}

test('how often a run was killed before it began is counted anew when it has begun', async () => {
  const { id } = await aRun(c, { workflow: 'once' })
  await offeredAndKilled(id)
  assert.equal(await countOf(id), 1)
  const offer = await anOffer(id)
  await link.accept(offer)
  await link.report(offer, 1, start())
  assert.equal(await countOf(id), 0)
})

async function countOf(id: string): Promise<unknown> {
  const [row] = await c.db`select cut_replays from runs where id = ${id}`
  return row?.cutReplays
}

test('a replay that was accepted and not begun when its agent was killed counts as cut off', async () => {
  const offer = await aReplay()
  await link.accept(offer)
  await reportedAfterStart(offer, UNBEGUN)
  assert.deepEqual(await stateOf(offer.run), { status: 'sleeping', attempt: 1, cutReplays: 1 })
})

test('what an agent had accepted may have begun when it was killed', async () => {
  const offer = await anOffer()
  await link.accept(offer)
  await reportedAfterStart(offer, KILLED)
  assert.deepEqual(await failure(offer), { status: 'failed', code: 'RUN_CRASHED' })
})

test('what has begun is not taken back, though its agent had not accepted it', async () => {
  for (const ending of [KILLED, UNBEGUN, end({ how: 'unready', reason: LOST_REASONS.fenced })]) {
    const offer = await anOffer()
    await reportedAfterStart(offer, start(), ending)
    assert.deepEqual(await failure(offer), { status: 'failed', code: 'RUN_CRASHED' })
  }
})

test('a run that is being cancelled does not go back', async () => {
  const offer = await anOffer()
  await c.call(ops.runs.cancel, { run: offer.run })
  await reportedAfterStart(offer, KILLED)
  assert.deepEqual(await failure(offer), { status: 'cancelled', code: undefined })
})

/** Offers of another coordinator, where the org has given back its share. */
async function beyondTheShare(act: (at: { there: Link; elsewhere: TestAgent; id: RunId }) => Promise<void>) {
  const other = await c.another()
  while (other.deps.returns.take(c.orgId)) continue
  const elsewhere = agent.at(other)
  const there = await elsewhere.connect([])
  const { id } = await aRun(c, { workflow: 'once' })
  await act({ there, elsewhere, id })
  await c.call(ops.runs.cancel, { run: id })
  await other.stop()
  link = await agent.connect()
}

const STOPPED: [how: 'unready' | 'lost', isAccepted: boolean, attempt: number][] = [
  ['unready', true, 1],
  ['lost', true, 2],
  ['lost', false, 1],
]
for (const [how, isAccepted, next] of STOPPED)
  test(`beyond the share of its org a run waits for half a minute: ${how}${isAccepted ? '' : ', not accepted'}`, () =>
    beyondTheShare(async ({ there, elsewhere, id }) => {
      const [offer] = await elsewhere.poll()
      if (isAccepted) await there.accept(offer!)
      await there.report(offer!, 1, end({ how, reason: LOST_REASONS.shutdown }))
      const { status, attempt } = await runOf(c, id)
      assert.deepEqual({ status, attempt }, { status: 'queued', attempt: next })
      assert.deepEqual(await elsewhere.poll(1, 1), [])
    }))

test('beyond the share an offer that its agent does not know of runs out', () =>
  beyondTheShare(async ({ elsewhere, id }) => {
    const [offer] = await elsewhere.poll()
    assert.equal(offer?.run, id)
    await elsewhere.connect([])
    assert.equal((await runOf(c, id)).status, 'pending')
    assert.deepEqual(await elsewhere.poll(1, 1), [])
  }))

test('beyond the share a run that was led back waits as it did, and for half a minute', () =>
  beyondTheShare(async ({ there, elsewhere, id }) => {
    const [first] = await elsewhere.poll()
    await there.accept(first!)
    await there.report(first!, 1, start(), sleeps(1, 0), parked('sleep'), evicted())
    const [offer] = await elsewhere.poll()
    assert.equal(offer?.replay, true)
    await there.accept(offer)
    await there.report(offer, 1, end({ how: 'lost', reason: LOST_REASONS.shutdown }))
    const [row] = await c.db`select status, attempt, cut_replays from runs where id = ${id}`
    assert.deepEqual({ ...row }, { status: 'sleeping', attempt: 1, cutReplays: 0 })
    assert.deepEqual(await elsewhere.poll(1, 1), [])
  }))

for (const how of ['evicted', 'lost', 'killed'] as const)
  test(`beyond the share a run that was led back and has not gone on waits for half a minute: ${how}`, () =>
    beyondTheShare(async ({ there, elsewhere, id }) => {
      const ending = { evicted: evicted(), lost: KILLED, killed: end({ how: 'killed', signal: 'SIGKILL' }) }[how]
      const [first] = await elsewhere.poll()
      await there.accept(first!)
      // The wait is new.
      await there.report(first!, 1, start(), sleeps(1, 0), parked('sleep'), ending)
      const [second] = await elsewhere.poll()
      assert.equal(second?.replay, true)
      await there.accept(second)
      await there.report(second, 1, parked('sleep'))
      await there.report(second, 2, ending)
      assert.equal((await runOf(c, id)).status, 'sleeping')
      assert.deepEqual(await elsewhere.poll(1, 1), [])
    }))

test('what a commit that fails takes of the share is given back: it is tried again, and in halves', async () => {
  const [{ id }, { id: other }] = [await aRun(c, { workflow: 'once' }), await aRun(c, { workflow: 'once' })]
  const offers = await agent.poll(2)
  await link.accept(...offers)
  const ofAgent = { first: 1, runnerId: agent.id, orgId: c.orgId, commands: new Map(), outputs: new Map() }
  const batchOf = (run: RunId, entry: Entry): ReadBatch => {
    const { epoch } = offers.find((offer) => offer.run === run)!
    return { ...ofAgent, run, epoch, entries: [entry] }
  }
  const stopped = batchOf(id, end({ how: 'lost', reason: LOST_REASONS.shutdown }))
  const deps = { ...c.deps, returns: createReturns(c.deps.log, 1) }
  // What was returned was not judged, which nobody may commit.
  const failing = [stopped, batchOf(other, end(returned(1)))]
  for (let n = 0; n < 3; n++) await assert.rejects(applyBatches(deps, failing), /was not judged/)
  await applyBatches(deps, [stopped])
  assert.equal((await agent.poll())[0]?.run, id)
})

test('an agent that is killed twice before it accepts rests for a while', async () => {
  for (const killed of [KILLED, UNBEGUN]) {
    const offer = await anOffer()
    await reportedAfterStart(offer, killed)
    await c.call(ops.runs.cancel, { run: offer.run })
  }
  const { runner } = await c.call(ops.runners.get, { runner: agent.id })
  assert.deepEqual([runner.intake.state, runner.intake.by?.kind], ['cordoned', 'system'])
})
