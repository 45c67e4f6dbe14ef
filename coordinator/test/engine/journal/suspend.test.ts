import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { ops } from '@windlass/shared/ops/index.ts'
import {
  PATIENT_MS,
  anAgent,
  end,
  type Link,
  placementOf,
  returned,
  start,
  takeNext,
  type TestAgent,
} from '../../_kit/agent.ts'
import { aCoordinator, aRun, runOf, type TestCoordinator, typesOf } from '../../_kit/coordinator.ts'
import {
  asks,
  calls,
  delivered,
  evicted,
  goesOn,
  journalOf,
  parked,
  sleeps,
  stepped,
  wakeOf,
} from '../../_kit/journal.ts'
import { journalCrew } from '../../_kit/journal-crew.ts'
import { until } from '../../_kit/until.ts'
import { aWorkflow } from '../../_kit/workflow.ts'

let c: TestCoordinator
let agent: TestAgent
let link: Link

before(async () => {
  c = await aCoordinator()
  await aWorkflow(c, { slug: 'parent' })
  await aWorkflow(c, { slug: 'child' })
  agent = await anAgent(c)
  link = await agent.connect()
})
after(async () => {
  agent.close()
  await c.stop()
})

const { begun } = journalCrew(() => ({ c, agent, link }), 'parent')

test('a parked run sleeps, is woken in its process when the time has come, and goes on', async () => {
  const offer = await begun()
  await link.report(offer, 2, sleeps(1, 60), parked('sleep', 7))
  const asleep = await runOf(c, offer.run)
  assert.equal(asleep.status, 'sleeping')
  assert.equal(asleep.waiting?.for, 'sleep')
  assert.ok(asleep.waiting.until! >= asleep.waiting.since)
  assert.equal(asleep.computeMs, 7)
  const completions = [{ n: 1, state: 'done', result: 'null' }]
  assert.deepEqual(await wakeOf(link, offer), { run: offer.run, epoch: offer.epoch, completions })
  assert.equal((await runOf(c, offer.run)).status, 'sleeping')
  await link.report(offer, 4, goesOn(), delivered([1, 1, 1, 1]))
  const awake = await runOf(c, offer.run)
  assert.deepEqual([awake.status, awake.waiting, awake.attempt], ['running', null, 1])
  await link.report(offer, 6, end(returned(1), 3))
  assert.deepEqual(await typesOf(c, offer.run), [
    'run.queued',
    'run.pending',
    'run.running',
    'run.sleeping',
    'run.resumed',
    'output',
    'run.completed',
  ])
  assert.equal((await runOf(c, offer.run)).computeMs, 10)
})

test('a run whose process was given up rests, and is offered with its journal when its wait is over', async () => {
  const offer = await begun()
  await link.report(offer, 2, stepped(1, 'kept'), sleeps(2, 150), delivered([1, 1]), parked('sleep'), evicted())
  const resting = await runOf(c, offer.run)
  assert.deepEqual([resting.status, resting.attempt], ['sleeping', 1])
  assert.deepEqual(await agent.poll(1, 0), [])
  const [again] = await agent.poll(1, PATIENT_MS)
  assert.ok(again)
  assert.deepEqual([again.run, again.attempt, again.epoch, again.replay], [offer.run, 1, offer.epoch + 1, true])
  const records = journalOf(again)
  assert.deepEqual(
    records.map(({ n, state, result, delivered: order }) => [n, state, result, order]),
    [
      [1, 'done', '"kept"', 1],
      [2, 'done', 'null', null],
    ],
  )
  assert.equal(typeof records[1]!.completed, 'number')
  await link.accept(again)
  assert.equal((await runOf(c, offer.run)).status, 'sleeping')
  assert.deepEqual(await link.report(offer, 7, goesOn()), { kind: 'stale' })
  await link.report(again, 1, start(), goesOn(), delivered([2, 2, 2, 1]), end(returned('done'), 2))
  const run = await runOf(c, offer.run)
  assert.deepEqual([run.status, run.attempt], ['completed', 1])
})

test('what comes before the program parks is kept, and brings an evicted run back at once', async () => {
  const offer = await begun()
  await link.report(offer, 2, asks(1))
  const { inputs } = await c.call(ops.inputs.list, { org: c.org, run: offer.run })
  await c.call(ops.inputs.respond, { input: inputs[0]!.id, answer: { yes: true } })
  assert.deepEqual((await wakeOf(link, offer)).completions[0]!.result, '{"yes":true}')
  await link.report(offer, 3, parked('input'), evicted('shutdown'))
  assert.equal((await runOf(c, offer.run)).status, 'awaiting_input')
  const [again] = await agent.poll(1, PATIENT_MS)
  assert.equal(again?.run, offer.run)
  await link.accept(again)
  await link.report(again, 1, start(), goesOn(), delivered([1, 1]), end(returned(null), 1))
})

test('a child is created with the entry that calls it, and its end wakes its parent with what it returned', async () => {
  const offer = await begun()
  await link.report(offer, 2, calls(1, 'child', { a: 1 }), parked('child'))
  const parent = await runOf(c, offer.run)
  assert.equal(parent.status, 'waiting_for_child')
  const [childId] = parent.waiting!.childRunIds!
  const child = await runOf(c, childId!)
  assert.deepEqual(
    [child.parentRunId, child.rootRunId, child.trigger.kind, child.status],
    [offer.run, offer.run, 'child', 'queued'],
  )
  const childOffer = await takeNext(agent, link)
  assert.equal(childOffer.inputText, '{"a":1}')
  await link.report(childOffer, 2, end(returned({ b: 2 }), 1))
  const { completions } = await wakeOf(link, offer)
  assert.deepEqual(completions, [{ n: 1, state: 'done', result: '{"b":2}' }])
  await link.report(offer, 4, goesOn(), end(returned(null), 1))
})

test('a call that cannot be made fails in the program, with the reason, and creates nothing', async () => {
  const offer = await begun()
  await link.report(offer, 2, calls(1, 'no-such'))
  const [completion] = (await wakeOf(link, offer)).completions
  assert.equal(completion!.state, 'failed')
  const error = JSON.parse(completion!.result) as { code: string; message: string }
  assert.equal(error.code, 'CALL_REFUSED')
  assert.match(error.message, /no workflow `no-such`/)
  await link.report(offer, 3, end(returned(null), 1))
})

test('a call whose input has too many lists is refused, and its run goes on', async () => {
  const offer = await begun()
  const lists = (count: number) => Array.from({ length: count }, () => [])
  await link.report(offer, 2, calls(1, 'child', lists(300_000)))
  const { completions } = await wakeOf(link, offer)
  assert.deepEqual(
    completions.map(({ n }) => n),
    [1],
  )
  const { code, message, detail } = JSON.parse(completions[0]!.result) as Record<string, unknown>
  assert.deepEqual([code, detail], ['CALL_REFUSED', { path: 'input', limit: 300_000 }])
  assert.match(String(message), /^input: has more than 300000 lists and objects/)
  await link.report(offer, 3, calls(2, 'child', lists(299_999)))
  const child = await takeNext(agent, link)
  assert.equal((await runOf(c, child.run)).parentRunId, offer.run)
  await link.report(child, 2, end(returned(null), 1))
  await link.report(offer, 4, end(returned(null), 1))
})

test('completions that the program has not been given are said again with the next welcome and heartbeat', async () => {
  const offer = await begun()
  await link.report(offer, 2, sleeps(1, 0), parked('sleep'))
  await wakeOf(link, offer)
  await link.heartbeat(1, placementOf(offer))
  assert.deepEqual((await wakeOf(link, offer)).completions, [{ n: 1, state: 'done', result: 'null' }])
  await link.report(offer, 4, goesOn(), delivered([1, 1]))
  await link.heartbeat(2, placementOf(offer))
  await link.report(offer, 6, end(returned(null), 1))
  assert.deepEqual(
    link.unread().filter((frame) => frame.t === 'wake' && frame.runs.some((wake) => wake.run === offer.run)),
    [],
  )
})

test('nothing of a run that has ended stays open: timers, questions, entries', async () => {
  const offer = await begun()
  await link.report(offer, 2, sleeps(1, 3_600_000), asks(2), end(returned(null), 1))
  const { db } = c
  assert.deepEqual([...(await db`select 1 from timers where run_id = ${offer.run}`)], [])
  const states = await db<{ state: string }[]>`select state from journal where run_id = ${offer.run} order by n`
  assert.deepEqual(
    states.map((row) => row.state),
    ['closed', 'closed'],
  )
  const { inputs } = await c.call(ops.inputs.list, { org: c.org, run: offer.run, status: ['closed'] })
  assert.equal(inputs.length, 1)
})

test('an agent that comes back without its parked run has lost nothing: the run rests in the same attempt', async () => {
  const other = await anAgent(c, { name: 'forgetful' })
  const first = await other.connect()
  await aRun(c, { workflow: 'parent' })
  const offer = await takeNext(other, first)
  await first.report(offer, 2, sleeps(1, 200), parked('sleep'))
  await other.connect()
  await until('the run to be without a process', async () => {
    const [row] = await c.db<{ place: string | null }[]>`select place from runs where id = ${offer.run}`
    return row!.place === null
  })
  const run = await runOf(c, offer.run)
  assert.deepEqual([run.status, run.attempt], ['sleeping', 1])
  const [again] = await agent.poll(1, PATIENT_MS)
  assert.deepEqual([again!.run, again!.attempt, again!.replay], [offer.run, 1, true])
  await link.accept(again!)
  await link.report(again!, 1, start(), goesOn(), end(returned(null), 1))
  other.close()
})
