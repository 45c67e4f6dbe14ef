import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { Ending } from '@windlass/shared/model/ending.ts'
import { LOST_REASONS, NOT_TAKEN_BACK } from '@windlass/shared/model/lost-reasons.ts'
import { anAgent, end, type Link, returned, start, type TestAgent } from '../../_kit/agent.ts'
import { aCoordinator, runOf, type TestCoordinator } from '../../_kit/coordinator.ts'
import { delivered, evicted, goesOn, parked, sleeps } from '../../_kit/journal.ts'
import { journalCrew } from '../../_kit/journal-crew.ts'
import { aWorkflow } from '../../_kit/workflow.ts'

let c: TestCoordinator
let agent: TestAgent
let link: Link

before(async () => {
  c = await aCoordinator()
  await aWorkflow(c, { slug: 'any' })
  agent = await anAgent(c)
  link = await agent.connect()
})
after(async () => {
  agent.close()
  await c.stop()
})

const { begun, next, hurry } = journalCrew(() => ({ c, agent, link }), 'any')
const killed = (): Ending => ({ how: 'killed', signal: 'SIGKILL' })

test('a replay that dies is tried again five times without touching the attempt; the sixth fails the run', async () => {
  let offer = await begun()
  const { run } = offer
  await link.report(offer, 2, sleeps(1, 0), parked('sleep'), evicted())
  for (let replays = 1; replays <= 6; replays++) {
    offer = await next(run)
    assert.deepEqual([offer.attempt, offer.replay], [1, true])
    await link.report(offer, 1, start(), end(killed(), 1))
    if (replays === 6) break
    assert.equal((await runOf(c, run)).status, 'sleeping')
    assert.deepEqual(await agent.poll(1, 0), [], 'it waits before it is tried again')
    await hurry(run)
  }
  const failed = await runOf(c, run)
  assert.deepEqual([failed.status, failed.error?.code, failed.attempt], ['failed', 'RUN_CRASHED', 1])
  assert.match(failed.error!.message, /lost 6 times/)
})

test('a replay that comes through counts from zero again', async () => {
  let offer = await begun()
  await link.report(offer, 2, sleeps(1, 0), parked('sleep'), evicted())
  offer = await next(offer.run)
  await link.report(offer, 1, start(), end(killed(), 1))
  await hurry(offer.run)
  offer = await next(offer.run)
  await link.report(offer, 1, start(), end({ how: 'lost', reason: LOST_REASONS.killed }, 1))
  await hurry(offer.run)
  offer = await next(offer.run)
  await link.report(offer, 1, start(), goesOn(), delivered([1, 1]))
  const [row] = await c.db<{ replays: number; cutReplays: number }[]>`
    select replays, cut_replays from runs where id = ${offer.run}`
  assert.deepEqual({ ...row }, { replays: 0, cutReplays: 0 })
  await link.report(offer, 4, end(returned(null), 1))
})

test('a replay that is lost with its agent does not count for the six, and has a limit of its own', async () => {
  let offer = await begun()
  const { run } = offer
  const reasons = [
    LOST_REASONS.killed,
    // The words of two versions of the agent.
    `${NOT_TAKEN_BACK}Error: it has ended`,
    'its agent was killed, and the next one could not take it back: Error: it has ended',
  ]
  await link.report(offer, 2, sleeps(1, 0), parked('sleep'), evicted())
  const lose = async (ending: Ending) => {
    offer = await next(run)
    assert.deepEqual([offer.attempt, offer.replay], [1, true])
    await link.report(offer, 1, start(), end(ending, 1))
  }
  for (let i = 0; i < 9; i++) {
    await lose({ how: 'lost', reason: reasons[i % 3]! })
    const { status, lost } = await runOf(c, run)
    assert.deepEqual([status, lost?.what], ['sleeping', 'daemon'])
    assert.deepEqual(await agent.poll(1, 0), [], 'it waits before it is tried again')
    await hurry(run)
  }
  // Those of the program count beside them, from zero.
  for (let i = 0; i < 5; i++) {
    await lose(killed())
    assert.equal((await runOf(c, run)).status, 'sleeping')
    await hurry(run)
  }
  await c.db`update runs set cut_replays = cut_replays + 491 where id = ${run}`
  await lose({ how: 'lost', reason: LOST_REASONS.killed })
  const failed = await runOf(c, run)
  assert.deepEqual([failed.status, failed.error?.code, failed.attempt], ['failed', 'RUN_CRASHED', 1])
  assert.match(failed.error!.message, /lost 501 times, with its agent or the machine/)
})

test('a replay that cannot be begun says why, is tried later and later, and comes to an end', async () => {
  let offer = await begun()
  const { run } = offer
  await link.report(offer, 2, sleeps(1, 0), parked('sleep'), evicted())
  const putOff = async () => {
    offer = await next(run)
    await link.report(offer, 1, end({ how: 'unready', reason: 'the disk is full', blame: 'service' }))
    return runOf(c, run)
  }
  for (const laterMs of [30_000, 60_000]) {
    const { status, lost } = await putOff()
    assert.deepEqual([status, lost?.what, lost?.reason], ['sleeping', 'program', 'the disk is full'])
    const [timer] = await c.db<[{ ms: number }]>`
      select (extract(epoch from due_at - now()) * 1000)::int as ms
      from timers where run_id = ${run} and kind = 'enqueue'`
    assert.ok(timer.ms > laterMs - 25_000 && timer.ms <= laterMs, `${timer.ms}`)
    await hurry(run)
  }
  await c.db`update runs set cut_replays = 500 where id = ${run}`
  const failed = await putOff()
  assert.deepEqual([failed.status, failed.error?.code, failed.attempt], ['failed', 'RUN_CRASHED', 1])
  assert.match(failed.error!.message, /501 times or could not be begun .* the disk is full\./)
})
