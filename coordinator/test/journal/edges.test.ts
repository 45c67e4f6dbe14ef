import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { ops } from '@windlass/shared/ops/index.ts'
import type { Offer } from '@windlass/shared/wire/agent.ts'
import { anAgent, end, type Link, placementOf, returned, start, takeNext, type TestAgent } from '../_kit/agent.ts'
import { aCoordinator, aRun, HASTY, logOf, runOf, type TestCoordinator } from '../_kit/coordinator.ts'
import { calls, delivered, evicted, goesOn, identity, parked, said, sleeps, wakeOf } from '../_kit/journal.ts'
import { until } from '../_kit/until.ts'
import { aWorkflow } from '../_kit/workflow.ts'

let c: TestCoordinator
let agent: TestAgent
let link: Link

before(async () => {
  // Long leases: only offers run out here.
  c = await aCoordinator({ ...HASTY, FENCE_MS: 30_000, LEASE_MS: 60_000 })
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

async function begun(workflow = 'any'): Promise<Offer> {
  await aRun(c, { workflow })
  return takeNext(agent, link)
}

async function next(run: string): Promise<Offer> {
  const [offer] = await agent.poll(1, 5000)
  assert.equal(offer?.run, run)
  await link.accept(offer)
  return offer
}

async function hurry(run: string): Promise<void> {
  await c.db`update timers set due_at = now() where run_id = ${run}`
  c.deps.timers.expect(0)
}

test('a run that is cancelled while its replay is offered ends, and keeps nobody else from being taken back', async () => {
  const offer = await begun()
  await link.report(offer, 2, sleeps(1, 0), parked('sleep'), evicted())
  const [again] = await agent.poll(1, 5000)
  assert.equal(again?.run, offer.run)
  await aRun(c, { workflow: 'any' })
  const [other] = await agent.poll(1, 5000)
  assert.equal((await c.call(ops.runs.cancel, { run: offer.run })).run.status, 'cancelling')
  // Neither offer is taken.
  await until('the cancelled one to end', async () => (await runOf(c, offer.run)).status === 'cancelled')
  const back = await until('the other to be queued again', async () => {
    const run = await runOf(c, other!.run)
    return run.status === 'queued' && run
  })
  assert.equal(back.attempt, 1)
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
  const [offer] = await agent.poll(1, 5000)
  await hurry(offer!.run)
  const run = await until('the run to fail', async () => {
    const found = await runOf(c, offer!.run)
    return found.status === 'failed' && found
  })
  assert.equal(run.error?.code, 'RUN_TIMED_OUT')
})

test('what a program said twice counts once: a second call of the same number, results of another attempt', async () => {
  const first = await begun()
  await link.report(first, 2, calls(1, 'child'), calls(1, 'child'))
  const { runs } = await c.call(ops.runs.children, { run: first.run })
  assert.equal(runs.length, 1)
  await link.report(first, 4, end({ how: 'killed', signal: 'SIGKILL' }, 1))
  const child = await takeNext(agent, link)
  const second = child.run === first.run ? child : await next(first.run)
  const own = child.run === first.run ? await takeNext(agent, link) : child
  await link.report(own, 2, end(returned(1), 1))
  await link.report(second, 1, start(), delivered([1, 1]))
  const [row] = await c.db<{ delivered: number | null }[]>`select delivered from journal where run_id = ${first.run}`
  assert.equal(row!.delivered, null)
  await link.report(second, 3, end(returned(null), 1))
  const complaints = (await logOf(c, first.run)).filter((event) => event.type === 'log.stderr')
  assert.match(String(complaints[0]?.data['text']), /a second entry 1 of its journal/)
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
  for (let n = 1; had.size < count; n++) {
    await link.heartbeat(n, placementOf(first))
    const { completions } = await wakeOf(link, first)
    assert.ok(completions.length < count)
    await link.report(first, count + 2 + n, delivered(...completions.map(({ n }): [number, number] => [n, n])))
    for (const completion of completions) had.add(completion.n)
  }
  await link.report(first, count + 3 + Math.ceil(count / 9), end(returned(null), 1))
  await until(
    'nothing to be left',
    async () => (await c.db`select 1 from placements where run_id = ${first.run}`).length === 0,
  )
})

test('a journal with more than 32 MiB of results fails its run, which says what to do', async () => {
  const first = await begun()
  const large = `"${'x'.repeat(1024 * 1024)}"`
  for (let n = 1; n <= 33; n++) {
    const entry = identity(n, 'step', { name: 'large' })
    const verdict = await link.report(first, n + 1, said({ op: 'close', entry, state: 'done', result: large }))
    if (verdict.kind === 'stale') break
  }
  const run = await runOf(c, first.run)
  assert.deepEqual([run.status, run.error?.code], ['failed', 'JOURNAL_FULL'])
  assert.match(run.error!.message, /Return less from step\(\)/)
})
