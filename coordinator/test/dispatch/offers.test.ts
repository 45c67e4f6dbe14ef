import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { ops } from '@windlass/shared/ops/index.ts'
import type { Offer } from '@windlass/shared/wire/agent.ts'
import { anAgent, end, placementOf, returned, start, takeNext, type TestAgent } from '../_kit/agent.ts'
import { ageOffers, SWEEPING } from '../_kit/ageing.ts'
import { untilBlocked } from '../_kit/blocked.ts'
import { aCoordinatorOfItsOwn, aRun, logOf, runOf, type TestCoordinator } from '../_kit/coordinator.ts'
import { until } from '../_kit/until.ts'
import { aWorkflow } from '../_kit/workflow.ts'

let c: TestCoordinator
let agent: TestAgent

before(async () => {
  c = await aCoordinatorOfItsOwn(SWEEPING)
  await aWorkflow(c, { slug: 'any' })
  await aWorkflow(c, { slug: 'once', descriptor: { retries: { crash: 0 } } })
  agent = await anAgent(c)
})
after(async () => {
  agent.close()
  await c.stop()
})

/** The statement that gives runs out. */
const CLAIM = '%demands as %'

test('an offer that nobody accepts goes back into the queue, and no attempt is counted', async () => {
  const link = await agent.connect()
  // The descriptor allows no restart: an offer that was lost is none.
  const { id } = await aRun(c, { workflow: 'once' })
  const [offer] = await agent.poll()
  await ageOffers(c, id)
  await until('it to be queued again', async () => (await runOf(c, id)).status === 'queued')
  const run = await runOf(c, id)
  assert.deepEqual([run.attempt, run.error], [1, null])
  const log = await logOf(c, id)
  assert.deepEqual(
    log.map((event) => event.type),
    ['run.queued', 'run.pending', 'run.queued'],
  )
  assert.match(log.at(-1)?.data.reason as string, /not accepted in time/)

  // Who accepts too late hears so, and what he says of it is stale.
  assert.deepEqual(await link.accept(offer!), { t: 'accepted', runs: [], no: [placementOf(offer!)] })
  assert.deepEqual(await link.report(offer!, 1, start()), { kind: 'stale' })

  const [again] = await agent.poll()
  assert.deepEqual([again?.run, again?.attempt, again?.epoch], [id, 1, 2])
  assert.deepEqual((await link.accept(offer!)).no, [placementOf(offer!)])
  await link.accept(again!)
  await link.report(again!, 1, start(), end(returned(1)))
  assert.equal((await runOf(c, id)).status, 'completed')
})

test('a poll that is answered after its client has gone loses no run', async () => {
  const leaving = new AbortController()
  const gone = await anAgent(c)
  const poll = gone.poll(4, 20_000, leaving.signal)
  await until('the poll to wait', () => c.deps.dispatchers.waiting() === 1)
  const held = await c.db.begin(async (tx) => {
    // The claim waits for this lock, and its client leaves meanwhile.
    await tx`lock table placements in access exclusive mode`
    const run = await aRun(c, { workflow: 'any' })
    await untilBlocked(c.db, CLAIM)
    leaving.abort()
    await poll.catch(() => {})
    return run
  })
  const offer = await until('the offer', async () => (await agent.poll(1, 1000))[0])
  assert.equal(offer.run, held.id)
  const run = await runOf(c, held.id)
  assert.deepEqual([run.status, run.attempt, run.runner?.id], ['pending', 1, agent.id])
})

test('what is claimed for a client that has gone goes back at once, and its runner is not blamed', async () => {
  const calm = await aCoordinatorOfItsOwn({ OFFER_MS: 60_000, LEASE_MS: 90_000 })
  try {
    await aWorkflow(calm, { slug: 'any' })
    const gone = await anAgent(calm)
    for (let round = 0; round < 3; round++) {
      const leaving = new AbortController()
      const poll = gone.poll(4, 20_000, leaving.signal)
      await until('the poll to wait', () => calm.deps.dispatchers.waiting() === 1)
      const { id } = await calm.db.begin(async (tx) => {
        await tx`lock table placements in access exclusive mode`
        const run = await aRun(calm, { workflow: 'any' })
        await untilBlocked(calm.db, CLAIM)
        leaving.abort()
        await poll.catch(() => {})
        return run
      })
      await until('the run to be back', async () => (await logOf(calm, id)).length === 3)
      assert.match((await logOf(calm, id)).at(-1)?.data.reason as string, /was gone before it was told/)
      const run = await runOf(calm, id)
      assert.deepEqual([run.status, run.attempt, run.lost], ['queued', 1, null])
      await calm.call(ops.runs.cancel, { run: id })
    }
    const [{ state, unaccepted }] = await calm.db<[{ state: string; unaccepted: number }]>`
      select state, unaccepted from runner_intake where runner_id = ${gone.id}`
    assert.deepEqual([state, unaccepted], ['open', 0])
  } finally {
    await calm.stop()
  }
})

test('an offer that is declined goes back at once, and nobody is blamed; what is no offer to this agent stays', async () => {
  const calm = await aCoordinatorOfItsOwn({ OFFER_MS: 60_000, LEASE_MS: 90_000 })
  try {
    await aWorkflow(calm, { slug: 'any' })
    const [declining, other] = [await anAgent(calm), await anAgent(calm)]
    const [link, theirs] = [await declining.connect(), await other.connect()]
    await aRun(calm, { workflow: 'any' })
    const accepted = await takeNext(declining, link)
    const ids = [await aRun(calm, { workflow: 'any' }), await aRun(calm, { workflow: 'any' })].map(({ id }) => id)
    const [[mine], [foreign]] = [await declining.poll(), await other.poll()]
    link.send({ t: 'decline', runs: [mine, foreign, accepted].map((offer) => placementOf(offer!)) })
    await until('it to be back', async () => (await runOf(calm, mine!.run)).status === 'queued')
    assert.deepEqual([mine!.run, foreign!.run].toSorted(), ids.toSorted())
    assert.equal((await runOf(calm, mine!.run)).attempt, 1)
    assert.deepEqual((await theirs.accept(foreign!)).runs, [placementOf(foreign!)])
    assert.deepEqual((await link.heartbeat(1, placementOf(accepted))).stale, [])
    const [{ unaccepted }] = await calm.db<[{ unaccepted: number }]>`
      select unaccepted from runner_intake where runner_id = ${declining.id}`
    assert.equal(unaccepted, 0)
    declining.close()
    other.close()
  } finally {
    await calm.stop()
  }
})

test('what an org gives back beyond its share waits, and does not come with the next poll', async () => {
  const calm = await aCoordinatorOfItsOwn({ OFFER_MS: 60_000, LEASE_MS: 90_000 })
  try {
    await aWorkflow(calm, { slug: 'any' })
    const declining = await anAgent(calm)
    const link = await declining.connect()
    const { id } = await aRun(calm, { workflow: 'any' })
    const decline = (offer: Offer) => link.send({ t: 'decline', runs: [placementOf(offer)] })
    const [first] = await declining.poll()
    decline(first!)
    await until('it to be back', async () => (await runOf(calm, id)).status === 'queued')
    while (calm.deps.returns.take(calm.orgId)) continue
    const [second] = await declining.poll()
    decline(second!)
    // Taken when what was said before has had its end.
    await link.accept({ ...second!, epoch: 0 })
    assert.equal((await runOf(calm, id)).status, 'pending')
    assert.deepEqual(await declining.poll(1, 1), [])
    declining.close()
  } finally {
    await calm.stop()
  }
})

test('an agent that declines runs of others locks none of them', async () => {
  const calm = await aCoordinatorOfItsOwn({ OFFER_MS: 60_000, LEASE_MS: 90_000 })
  try {
    await aWorkflow(calm, { slug: 'any' })
    const [declining, other] = [await anAgent(calm), await anAgent(calm)]
    const [link, theirs] = [await declining.connect(), await other.connect()]
    await aRun(calm, { workflow: 'any' })
    const foreign = await takeNext(other, theirs)
    await aRun(calm, { workflow: 'any' })
    const [mine] = await declining.poll()
    await calm.db.begin(async (tx) => {
      await tx`select 1 from runs where id = ${foreign.run} for update`
      link.send({ t: 'decline', runs: [placementOf(foreign)] })
      // It is taken when the one before it has ended.
      link.send({ t: 'decline', runs: [placementOf(foreign), placementOf(mine!)] })
      await until('its own to be back', async () => (await runOf(calm, mine!.run)).status === 'queued')
    })
    declining.close()
    other.close()
  } finally {
    await calm.stop()
  }
})

test('a heartbeat that comes before the commit of an accept does not call the offer stale', async () => {
  const { id } = await aRun(c, { workflow: 'any' })
  const link = await agent.connect()
  const offer = await until('the offer', async () => (await agent.poll(4, 1000)).find(({ run }) => run === id))
  const beat = await link.heartbeat(1, placementOf(offer))
  assert.deepEqual(beat.stale, [])
  assert.deepEqual((await link.accept(offer)).runs, [placementOf(offer)])
  await link.report(offer, 1, end(returned(1)))
})

test('heartbeats do not keep alive an offer that is never accepted', async () => {
  const { id } = await aRun(c, { workflow: 'any' })
  const link = await agent.connect()
  const offer = await until('the offer', async () => (await agent.poll(4, 1000)).find(({ run }) => run === id))
  let n = 0
  await link.heartbeat(++n, placementOf(offer))
  await ageOffers(c, id)
  await until(
    'the offer to be taken back',
    async () => (await link.heartbeat(++n, placementOf(offer))).stale.length > 0,
  )
  assert.equal((await runOf(c, id)).attempt, 1)
})
