import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { RunId } from '@windlass/shared/ids.ts'
import { ops } from '@windlass/shared/ops/index.ts'
import type { Offer } from '@windlass/shared/wire/agent.ts'
import { anAgent, end, type Link, returned, start, takeNext, type TestAgent } from '../../_kit/agent.ts'
import { aCoordinator, logOf, runOf, type TestCoordinator, typesOf } from '../../_kit/coordinator.ts'
import {
  calls,
  delivered,
  evicted,
  goesOn,
  identity,
  journalOf,
  opened,
  parked,
  said,
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
  await aWorkflow(c, { slug: 'any' })
  await aWorkflow(c, { slug: 'child' })
  await aWorkflow(c, { slug: 'fresh', descriptor: { retries: { onCrash: 'fresh' } } })
  await aWorkflow(c, {
    slug: 'patient',
    descriptor: { retries: { error: { max: 2, delay: '1h', factor: 3, maxDelay: '1d' } } },
  })
  agent = await anAgent(c)
  link = await agent.connect()
})
after(async () => {
  agent.close()
  await c.stop()
})

const { begun, next, hurry } = journalCrew(() => ({ c, agent, link }), 'any')
const killed = (): Parameters<typeof end>[0] => ({ how: 'killed', signal: 'SIGKILL' })

const isAtRest = (run: string) =>
  until('the run to rest', async () => {
    const [row] = await c.db<{ place: string | null }[]>`select place from runs where id = ${run}`
    return row!.place === null
  })

test('a process lost while it executes restarts from the top, and what succeeded is offered to be taken over', async () => {
  const first = await begun()
  await link.report(first, 2, stepped(1, 'paid'), sleeps(2, 3_600_000), end(killed(), 1))
  const second = await next(first.run)
  assert.deepEqual([second.attempt, second.replay], [2, false])
  assert.deepEqual(
    journalOf(second).map(({ n, attempt, state }) => [n, attempt, state]),
    [
      [1, 1, 'done'],
      [2, 1, 'open'],
    ],
  )
  await link.report(
    second,
    1,
    start(),
    said({ op: 'adopt', n: 1, position: 1 }),
    said({ op: 'adopt', n: 2, position: 2 }),
    delivered([1, 1]),
    parked('sleep'),
  )
  const run = await runOf(c, first.run)
  assert.deepEqual([run.status, run.attempt], ['sleeping', 2])
  // The deadline is still that of the first attempt.
  assert.ok(run.waiting!.until! < run.waiting!.since + 3_600_000)
  await c.call(ops.runs.cancel, { run: run.id })
  await link.report(second, 6, end({ how: 'cancelled', forced: false }, 0))
})

test('a step that is taken over and ends in the same breath has its place in the new attempt', async () => {
  const first = await begun()
  const step = { name: 'waits' }
  const within = { parent: '/waits#1' }
  await link.report(first, 2, sleeps(1, 0), sleeps(2, 0), opened(3, { for: 'step' }, step))
  await link.report(first, 5, sleeps(4, 0), opened(5, { for: 'sleep', ms: 0 }, within), end(killed(), 1))
  const second = await next(first.run)
  // Two calls less than before: the place of the step is that of the sleep within it in the first attempt no more.
  await link.report(
    second,
    1,
    start(),
    said({ op: 'adopt', n: 3, position: 1 }),
    said({ op: 'close', entry: identity(3, 'step', { ...step, position: 1 }), state: 'done', result: 'null' }),
    said({ op: 'adopt', n: 5, position: 2 }),
    stepped(6, 'new', 'next', 3),
    sleeps(7, 3_600_000),
    parked('sleep'),
    evicted(),
  )
  await hurry(first.run)
  const again = await next(first.run)
  const own = journalOf(again).filter(({ attempt }) => attempt === 2)
  assert.deepEqual(
    own.map(({ n, position }) => [n, position]),
    [
      [3, 1],
      [5, 2],
      [6, 3],
      [7, 7],
    ],
  )
  await link.report(again, 1, start(), end(returned(null), 1))
})

test('`onCrash: fresh` forgets what former attempts did: waits end, children are cancelled, and entries count on', async () => {
  const first = await begun('fresh')
  await link.report(first, 2, stepped(1, 'paid'), sleeps(2, 3_600_000), calls(3, 'child'), end(killed(), 1))
  // The child of the lost attempt waits in the same queue until its cancel is there, which may be before this poll.
  const taken = await takeNext(agent, link)
  const second = taken.run === first.run ? taken : await takeNext(agent, link)
  const [{ id: child }] = await c.db<[{ id: RunId }]>`select id from runs where parent_run_id = ${first.run}`
  assert.deepEqual([journalOf(second), second.journal.entries, second.attempt], [[], 3, 2])
  assert.deepEqual([...(await c.db`select 1 from timers where run_id = ${first.run}`)], [])
  const isCancelled = async () => ['cancelling', 'cancelled'].includes((await runOf(c, child)).status)
  await until('the child of the lost attempt to be cancelled', isCancelled)
  if (taken !== second) await link.report(taken, 2, end({ how: 'cancelled', forced: false }, 0))
  // What it calls anew is another child, whatever becomes of the first.
  await link.report(second, 1, start(), calls(4, 'child'), end(returned(null), 1))
  const { runs } = await c.call(ops.runs.children, { run: first.run })
  assert.equal(runs.length, 2)
  await c.call(ops.runs.cancel, { run: runs[0]!.id })
})

test('losing a parked process is no crash, whatever ended it', async () => {
  for (const ending of [killed(), { how: 'lost', reason: 'the power' } as const]) {
    const first = await begun()
    await link.report(first, 2, sleeps(1, 3_600_000), parked('sleep'), end(ending, 1))
    const run = await runOf(c, first.run)
    assert.deepEqual([run.status, run.attempt], ['sleeping', 1])
    await hurry(first.run)
    const second = await next(first.run)
    assert.deepEqual([second.attempt, second.replay], [1, true])
    await link.report(second, 1, start(), goesOn(), end(returned(null), 1))
    assert.equal((await runOf(c, first.run)).status, 'completed')
  }
})

test('a replay that meets something else blocks the run, which keeps its status until somebody restarts or cancels it', async () => {
  let offer = await begun()
  await link.report(offer, 2, sleeps(1, 0), parked('sleep'), evicted())
  offer = await next(offer.run)
  const mismatch = { expected: 'sleep(0) at index.ts:1:1', received: 'step x', at: 'index.ts:2:2' }
  await link.report(offer, 1, start(), end({ how: 'blocked', mismatch }, 1))
  const blocked = await runOf(c, offer.run)
  assert.deepEqual(
    [blocked.status, blocked.blocked?.code, blocked.blocked?.at],
    ['sleeping', 'REPLAY_MISMATCH', 'index.ts:2:2'],
  )
  assert.match(blocked.blocked!.message, /sleep\(0\) at index\.ts:1:1/)
  assert.deepEqual(await agent.poll(1, 0), [])
  const { run: restarted } = await c.call(ops.runs.restart, { run: offer.run })
  assert.deepEqual([restarted.status, restarted.attempt, restarted.blocked], ['queued', 2, null])
  offer = await next(offer.run)
  assert.equal(offer.replay, false)
  await link.report(offer, 1, start(), end(returned(null), 1))
  await assert.rejects(c.call(ops.runs.restart, { run: offer.run }), { code: 'RUN_NOT_BLOCKED' })
  const types = await typesOf(c, offer.run)
  assert.ok(types.includes('run.blocked') && types.includes('run.restarted'))
})

test('a run whose step fails in a replay, where it had got further, is replayed again before a block', async () => {
  let offer = await begun()
  await link.report(offer, 2, sleeps(1, 0), parked('sleep'), evicted())
  const mismatch = { expected: 'sleep(0)', received: 'step("x") failed: no network', at: '', mayPass: true }
  for (let replay = 1; replay <= 6; replay++) {
    await hurry(offer.run)
    offer = await next(offer.run)
    assert.deepEqual([offer.attempt, offer.replay], [1, true])
    await link.report(offer, 1, start(), end({ how: 'blocked', mismatch }, 1))
    const { status, blocked } = await runOf(c, offer.run)
    assert.deepEqual([status, blocked?.code], ['sleeping', replay === 6 ? 'REPLAY_MISMATCH' : undefined])
  }
  assert.match((await runOf(c, offer.run)).blocked!.message, /step\("x"\) failed: no network.*then restart the run/)
  const { why } = await c.call(ops.runs.why, { run: offer.run })
  assert.match(JSON.stringify(why), /no network/)
})

test('a thrown error is tried again as often and as late as the descriptor says', async () => {
  let offer = await begun('patient')
  const threw = () => end({ how: 'threw', error: { name: 'Error', message: 'not yet' } }, 1)
  await link.report(offer, 2, stepped(1, 'kept'), threw())
  const waiting = await runOf(c, offer.run)
  assert.deepEqual([waiting.status, waiting.attempt, waiting.error], ['queued', 2, null])
  assert.deepEqual(await agent.poll(1, 0), [])
  const delays = []
  for (let attempt = 2; attempt <= 3; attempt++) {
    const [timer] = await c.db<{ ms: number }[]>`
      select extract(epoch from due_at - now())::float8 * 1000 as ms from timers where run_id = ${offer.run} and kind = 'enqueue'`
    delays.push(Math.round(timer!.ms / 3_600_000))
    await hurry(offer.run)
    offer = await next(offer.run)
    assert.equal(offer.attempt, attempt)
    assert.equal(journalOf(offer)[0]?.result, '"kept"')
    await link.report(offer, 1, start(), threw())
  }
  assert.deepEqual(delays, [1, 3])
  const failed = await runOf(c, offer.run)
  assert.deepEqual([failed.status, failed.error?.message, failed.attempt], ['failed', 'not yet', 3])
})

test('a parent that crashes while its child works is given the same child again', async () => {
  const first = await begun()
  await link.report(first, 2, calls(1, 'child'), end(killed(), 1))
  const childOffer = await takeNext(agent, link)
  const offers =
    childOffer.run === first.run ? [childOffer, await takeNext(agent, link)] : [await takeNext(agent, link), childOffer]
  const [parent, child] = offers as [Offer, Offer]
  assert.deepEqual([parent.run, parent.attempt], [first.run, 2])
  await link.report(child, 2, end(returned('of the one child'), 1))
  await link.report(parent, 2, said({ op: 'adopt', n: 1, position: 1 }))
  assert.deepEqual((await wakeOf(link, parent)).completions, [{ n: 1, state: 'done', result: '"of the one child"' }])
  const { runs } = await c.call(ops.runs.children, { run: first.run })
  assert.equal(runs.length, 1)
  await link.report(parent, 3, end(returned(null), 1))
})

test('a cancel takes a parked run to `cancelling`, so that it can clean up, and an evicted one to its end', async () => {
  const first = await begun()
  await link.report(first, 2, sleeps(1, 3_600_000), parked('sleep'))
  const cancelling = await c.call(ops.runs.cancel, { run: first.run, reason: 'enough' })
  assert.equal(cancelling.run.status, 'cancelling')
  assert.equal((await link.next('cancel')).runs[0]!.why, 'cancelled')
  await link.report(first, 4, end({ how: 'cancelled', forced: false }, 1))
  assert.equal((await runOf(c, first.run)).status, 'cancelled')
  const second = await begun()
  await link.report(second, 2, sleeps(1, 3_600_000), parked('sleep'), evicted())
  await isAtRest(second.run)
  assert.equal((await c.call(ops.runs.cancel, { run: second.run })).run.status, 'cancelled')
})

test('a cancel reaches everything that the run has called, at any depth', async () => {
  const parent = await begun()
  await link.report(parent, 2, calls(1, 'child'), calls(2, 'child'), parked('child'))
  const child = await takeNext(agent, link)
  await link.report(child, 2, calls(1, 'any'), parked('child'), evicted())
  await c.call(ops.runs.cancel, { run: parent.run })
  const below = await c.db<{ status: string; depth: number }[]>`
    select status, depth from runs where root_run_id = ${parent.run} order by depth, id`
  assert.deepEqual(
    below.map(({ status, depth }) => [status, depth]),
    [
      ['cancelled', 1],
      ['cancelled', 1],
      ['cancelled', 2],
    ],
  )
  await link.report(parent, 5, end({ how: 'cancelled', forced: false }, 1))
  const log = await logOf(c, parent.run)
  assert.equal(log.at(-1)!.type, 'run.cancelled')
})
