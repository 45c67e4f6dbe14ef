import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { ops } from '@windlass/shared/ops/index.ts'
import { moment } from '@windlass/shared/test/_kit/until.ts'
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
import { ageOffers, SWEEPING } from '../../_kit/ageing.ts'
import { aCoordinatorOfItsOwn, aRun, runOf, type TestCoordinator } from '../../_kit/coordinator.ts'
import { calls, delivered, evicted, goesOn, identity, parked, said, sleeps, wakeOf } from '../../_kit/journal.ts'
import { journalCrew } from '../../_kit/journal-crew.ts'
import { until } from '../../_kit/until.ts'
import { aWorkflow } from '../../_kit/workflow.ts'

let c: TestCoordinator
let agent: TestAgent
let link: Link

before(async () => {
  c = await aCoordinatorOfItsOwn(SWEEPING)
  await aWorkflow(c, { slug: 'any' })
  await aWorkflow(c, { slug: 'child' })
  await aWorkflow(c, { slug: 'patient', descriptor: { retries: { error: { max: 2, delay: '1h' } } } })
  await aWorkflow(c, { slug: 'hasty', descriptor: { timeout: { queue: '1h' } } })
  agent = await anAgent(c)
  link = await agent.connect()
})
after(async () => {
  agent.close()
  await c.stop()
})

const deliveries = (count: number) => Array.from({ length: count }, (_, n): [number, number] => [n + 1, 1])
const { begun, next, hurry } = journalCrew(() => ({ c, agent, link }), 'any')

test('a run that is cancelled while its replay is offered ends, and keeps nobody else from being taken back', async () => {
  const offer = await begun()
  await link.report(offer, 2, sleeps(1, 0), parked('sleep'), evicted())
  const [again] = await agent.poll(1, PATIENT_MS)
  assert.equal(again?.run, offer.run)
  await aRun(c, { workflow: 'any' })
  const [other] = await agent.poll(1, PATIENT_MS)
  assert.equal((await c.call(ops.runs.cancel, { run: offer.run })).run.status, 'cancelling')
  // Neither offer is taken.
  await ageOffers(c, offer.run, other!.run)
  await until('the cancelled one to end', async () => (await runOf(c, offer.run)).status === 'cancelled')
  const back = await until('the other to be queued again', async () => {
    const run = await runOf(c, other!.run)
    return run.status === 'queued' && run
  })
  assert.equal(back.attempt, 1)
  // Two offers in a row that it has not taken, as the sweep notes at its end: it must say hello before it gets more.
  await moment('sweep.done', ({ of }) => of === 'placements')
  link = await agent.connect()
  await link.report(await next(back.id), 1, start(), end(returned(null), 1))
})

test('a child that fails between the restart of its parent and the new call is told to that call, then and in every replay', async () => {
  const first = await begun()
  await link.report(first, 2, calls(1, 'child'))
  const child = await takeNext(agent, link)
  await link.report(first, 3, end({ how: 'killed', signal: 'SIGKILL' }, 1))
  const second = await next(first.run)
  await link.report(child, 2, end({ how: 'threw', error: { name: 'Error', message: 'no' } }, 1))
  await link.report(second, 1, start(), said({ op: 'adopt', n: 1, position: 1 }), parked('child'))
  const { completions } = await wakeOf(link, second)
  assert.deepEqual(
    completions.map(({ n, state }) => [n, state]),
    [[1, 'failed']],
  )
  await link.heartbeat(1, placementOf(second))
  assert.equal((await wakeOf(link, second)).completions.length, 1)
  await link.report(second, 4, goesOn(), delivered([1, 1, 1, 1]), sleeps(2, 0), parked('sleep'), evicted())
  const third = await next(first.run)
  const records = JSON.parse(third.journal.text!) as { n: number; state: string; position: number }[]
  assert.deepEqual(
    records.map(({ n, state, position }) => [n, state, position]),
    [
      [1, 'failed', 1],
      [2, 'done', 2],
    ],
  )
  await link.report(third, 1, start(), goesOn(), end(returned(null), 1))
})

test('a replay that cannot be executed is a thrown error like any other', async () => {
  const first = await begun('patient')
  await link.report(first, 2, sleeps(1, 0), parked('sleep'), evicted())
  const second = await next(first.run)
  const error = { name: 'Error', message: 'The bundle is broken.', code: 'BUNDLE_UNUSABLE' }
  await link.report(second, 1, start(), end({ how: 'threw', error }, 1))
  const run = await runOf(c, first.run)
  assert.deepEqual([run.status, run.attempt, run.error], ['queued', 2, null])
  await c.call(ops.runs.cancel, { run: run.id })
})

test('what comes while a dead replay waits for its next try does not cut that short, and leaves no timer behind', async () => {
  const first = await begun()
  await link.report(first, 2, sleeps(1, 0), sleeps(2, 3_600_000), parked('sleep'), evicted())
  const second = await next(first.run)
  await link.report(second, 1, start(), end({ how: 'killed', signal: 'SIGKILL' }, 1))
  await c.db`update timers set due_at = now() where run_id = ${first.run} and kind = 'sleep'`
  c.deps.timers.expect(0)
  await until('the second sleep to be over', async () => {
    const rows = await c.db`select 1 from journal where run_id = ${first.run} and state = 'open'`
    return rows.length === 0
  })
  assert.deepEqual(await agent.poll(1, 0), [])
  await hurry(first.run)
  const third = await next(first.run)
  assert.deepEqual([...(await c.db`select 1 from timers where run_id = ${first.run}`)], [])
  await link.report(third, 1, start(), goesOn(), end(returned(null), 1))
})

test('the time in the queue is up also for a run whose offer nobody took', async () => {
  await aRun(c, { workflow: 'hasty' })
  const [offer] = await agent.poll(1, PATIENT_MS)
  const { run: id } = offer!
  await hurry(id)
  await until('the time to be looked at again', async () => {
    const later = await c.db`select from timers where run_id = ${id} and kind = 'queue-timeout' and due_at > now()`
    return later.length > 0
  })
  await ageOffers(c, id)
  await until('the run to be queued again', async () => (await runOf(c, id)).status === 'queued')
  await hurry(id)
  const run = await until('the run to fail', async () => {
    const found = await runOf(c, id)
    return found.status === 'failed' && found
  })
  assert.equal(run.error?.code, 'RUN_TIMED_OUT')
})

test('a call that is made twice ends its run, and creates one child', async () => {
  const first = await begun()
  await link.report(first, 2, calls(1, 'child'), calls(1, 'child'))
  const run = await runOf(c, first.run)
  assert.deepEqual([run.status, run.error?.code], ['failed', 'JOURNAL_UNREADABLE'])
  const { runs } = await c.call(ops.runs.children, { run: first.run })
  assert.equal(runs.length, 1)
  await c.call(ops.runs.cancel, { run: runs[0]!.id })
})

test('what a former attempt was given counts for that attempt only', async () => {
  const first = await begun()
  await link.report(first, 2, calls(1, 'child'), end({ how: 'killed', signal: 'SIGKILL' }, 1))
  const taken = [await takeNext(agent, link), await takeNext(agent, link)]
  const second = taken.find((offer) => offer.run === first.run)!
  const child = taken.find((offer) => offer.run !== first.run)!
  await link.report(child, 2, end(returned(1), 1))
  await link.report(second, 2, delivered([1, 1]))
  const [row] = await c.db<{ delivered: number | null }[]>`select delivered from journal where run_id = ${first.run}`
  assert.equal(row!.delivered, null)
  await link.report(second, 3, end(returned(null), 1))
})

test('a step that is opened and closed at once is one entry, with its result', async () => {
  const first = await begun()
  const entry = identity(1, 'step', { name: 'x' })
  const open = said({ op: 'open', entry, ask: { for: 'step' } })
  await link.report(first, 2, open, said({ op: 'close', entry, state: 'done', result: '"r"' }))
  const rows = await c.db`select n, state, result from journal where run_id = ${first.run}`
  assert.deepEqual([...rows], [{ n: 1, state: 'done', result: '"r"' }])
  await link.report(first, 4, end(returned(null), 1))
})

test('results that are large together are told in frames that an agent takes, and all in the end', async () => {
  const first = await begun()
  const count = 20
  await link.report(first, 2, ...Array.from({ length: count }, (_, i) => sleeps(i + 1, 3_600_000)), parked('sleep'))
  await c.db`
    update journal
    set state = 'done', result = '"' || repeat('x', 1000000) || '"', completion = n
    where run_id = ${first.run}`
  const had = new Set<number>()
  let n = 1
  for (; had.size < count; n++) {
    // It is told again once a second at most, however often an agent beats.
    do await link.heartbeat(n, placementOf(first))
    while (!link.unread().some((frame) => frame.t === 'wake' && frame.runs.some(({ run }) => run === first.run)))
    const { completions } = await wakeOf(link, first)
    assert.ok(completions.length < count)
    await link.report(first, count + 2 + n, delivered(...completions.map(({ n }): [number, number] => [n, n])))
    for (const completion of completions) had.add(completion.n)
  }
  // What was told may have been looked for before the last word arrived, and is told twice then.
  await link.report(first, count + 2 + n, end(returned(null), 1))
  await until(
    'nothing to be left',
    async () => (await c.db`select 1 from placements where run_id = ${first.run}`).length === 0,
  )
})

test('a word about the journal that cannot be read ends its run, and says so; it is not kept', async () => {
  const commands: [string, RegExp][] = [
    ['no JSON', /It begins with no JSON/],
    [
      JSON.stringify({ op: 'close', entry: identity(1, 'input'), state: 'done', result: '1' }),
      /It begins with .*"close"/,
    ],
    [JSON.stringify({ op: 'open', entry: identity(1, 'sleep'), ask: { for: 'sleep', ms: -1 } }), /"ms":-1/],
    [delivered(...deliveries(1001))[2] as string, /"deliver"/],
    [`{"op":"deliver","list":[],"filling":[${'[],'.repeat(2000)}1]}`, /"filling"/],
  ]
  for (const [text, message] of commands) {
    const first = await begun()
    await link.report(first, 2, ['j', Date.now(), text])
    const run = await runOf(c, first.run)
    assert.deepEqual([run.status, run.error?.code], ['failed', 'JOURNAL_UNREADABLE'])
    assert.match(run.error!.message, message)
    assert.deepEqual(await link.report(first, 3, goesOn()), { kind: 'stale' })
  }
})

test('as many deliveries as a program gathers are read', async () => {
  const first = await begun()
  assert.deepEqual(await link.report(first, 2, delivered(...deliveries(1000))), { kind: 'ack', seq: 2 })
  assert.equal((await runOf(c, first.run)).status, 'running')
})

test('a child whose own word cannot be read ends, and its parent is told', async () => {
  const parent = await begun()
  await link.report(parent, 2, calls(1, 'child'), parked('child'))
  const child = await takeNext(agent, link)
  await link.report(child, 2, ['j', Date.now(), 'no JSON'])
  const { completions } = await wakeOf(link, parent)
  assert.equal((JSON.parse(completions[0]!.result) as { code: string }).code, 'RUN_FAILED')
  await link.report(parent, 4, goesOn(), end(returned(null), 1))
})

test('two results of one step are the first', async () => {
  const first = await begun()
  const entry = identity(1, 'step', { name: 'x' })
  const close = (result: string) => said({ op: 'close', entry, state: 'done', result })
  await link.report(first, 2, close('1'), close('2'))
  const rows = await c.db`select result from journal where run_id = ${first.run}`
  assert.deepEqual([...rows], [{ result: '1' }])
  await link.report(first, 4, end(returned(null), 1))
})

test('a program cannot answer its own question', async () => {
  const first = await begun()
  const ask = { for: 'input', prompt: 'Sure?', schemaText: null, timeoutMs: null, onTimeoutText: null } as const
  const open = said({ op: 'open', entry: identity(1, 'input'), ask })
  await link.report(first, 2, open, said({ op: 'close', entry: identity(1, 'step'), state: 'done', result: '1' }))
  const [row] = await c.db<{ state: string }[]>`select state from journal where run_id = ${first.run}`
  assert.equal(row!.state, 'open')
  await link.report(first, 4, end(returned(null), 1))
})

test('an environment that is no name refuses the call', async () => {
  const first = await begun()
  const ask = {
    for: 'child',
    workflow: 'child',
    inputText: '1',
    version: null,
    environment: 'NOT A NAME',
    tags: [],
    priority: 0,
  }
  await link.report(first, 2, ['j', 1, JSON.stringify({ op: 'open', entry: identity(1, 'child'), ask })])
  const { completions } = await wakeOf(link, first)
  const error = JSON.parse(completions[0]!.result) as { code: string; message: string }
  assert.deepEqual([error.code, /environment: `NOT A NAME`/.test(error.message)], ['CALL_REFUSED', true])
  await link.report(first, 3, end(returned(null), 1))
})
