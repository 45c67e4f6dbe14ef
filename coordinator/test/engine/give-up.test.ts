import assert from 'node:assert/strict'
import { after, before, test, type TestContext } from 'node:test'
import { newId } from '@windlass/shared/ids.ts'
import { ops } from '@windlass/shared/ops/index.ts'
import type { Entry, Offer } from '@windlass/shared/wire/agent.ts'
import { noteRefused } from '../../engine/commit/give-up.ts'
import { weightOf } from '../../engine/rules/batch.ts'
import { anAgent, end, line, type Link, placementOf, returned, takeNext, type TestAgent } from '../_kit/agent.ts'
import { aCoordinatorOfItsOwn, aRun, logOf, runOf, type TestCoordinator, typesOf } from '../_kit/coordinator.ts'
import { untilPolled } from '../_kit/until.ts'
import { aWorkflow } from '../_kit/workflow.ts'

let c: TestCoordinator
let agent: TestAgent
let link: Link

/** What the database refuses here, for want of anything that our own checks let through. */
const POISON: Entry = ['e', 1, 'phase', '{"name":"poison"}']

before(async () => {
  c = await aCoordinatorOfItsOwn()
  await aWorkflow(c, { slug: 'any' })
  await c.db`alter table run_events add constraint no_poison check (data not like '%poison%')`
  agent = await anAgent(c)
  link = await agent.connect()
})
after(async () => {
  agent.close()
  await c.stop()
})

async function aRunning(): Promise<Offer> {
  await aRun(c, { workflow: 'any' })
  return takeNext(agent, link)
}

/** What the coordinator logs as errors, kept from the terminal. */
function errorsOf(t: TestContext) {
  const { mock } = t.mock.method(c.deps.log, 'error', () => {})
  return () => mock.calls.map(({ arguments: [name, facts] }) => [name, facts?.runId])
}

test('a run whose entries cannot be stored fails alone, and its neighbours of the same commit go on', async (t) => {
  const errors = errorsOf(t)
  const [bad, good] = [await aRunning(), await aRunning()]
  const batchOf = (offer: Offer, ...entries: Entry[]) => ({ run: offer.run, epoch: offer.epoch, first: 2, entries })
  const batches = [batchOf(bad, line('a'), POISON, end(returned(1))), batchOf(good, line('a'), end(returned(1)))]
  link.send({ t: 'entries', batches })
  assert.deepEqual(await link.verdict(bad), { kind: 'ack', seq: 4 })
  assert.deepEqual(await link.verdict(good), { kind: 'ack', seq: 3 })
  assert.equal((await runOf(c, good.run)).status, 'completed')

  const run = await runOf(c, bad.run)
  assert.deepEqual([run.status, run.error?.code], ['failed', 'INTERNAL'])
  assert.match(run.error!.message, /could not take what the agent reported.*coordinator's log/)
  assert.deepEqual(await typesOf(c, bad.run), ['run.queued', 'run.pending', 'run.running', 'run.failed'])
  assert.equal((await c.db`select 1 from placements where run_id = ${bad.run}`).length, 0)
  assert.deepEqual(errors(), [['run.entries.unusable', bad.run]])
  // Sent again with another connection they are known.
  assert.deepEqual(await link.report(bad, 2, line('a'), POISON, end(returned(1))), { kind: 'ack', seq: 4 })
})

test('entries that may be stored later are refused by name, and stored when their agent comes again', async (t) => {
  const { mock } = t.mock.method(c.deps.log, 'warn', () => {})
  const offer = await aRunning()
  await c.db.unsafe(`
    create function refuse() returns trigger language plpgsql as $$ begin perform no_such_function(); end $$;
    create trigger refuse before insert on run_events
      for each row when (new.data like '%later%') execute function refuse()`)
  link.send({ t: 'entries', batches: [{ run: offer.run, epoch: offer.epoch, first: 2, entries: [line('later')] }] })
  await untilPolled('the refusal', () => Promise.resolve(namesOf(mock.calls).includes('run.entries.refused')))
  const logged = mock.calls.find(({ arguments: [name] }) => name === 'run.entries.refused')!
  assert.equal(logged.arguments[1]?.runId, offer.run)
  assert.equal((await runOf(c, offer.run)).status, 'running')
  const why = async () => (await c.call(ops.runs.why, { run: offer.run })).why
  const codes = async () => (await why()).causes.map(({ code }) => code)
  await untilPolled('the reason', async () => (await codes())[0] === 'REPORTS_REFUSED')
  assert.match((await why()).summary, /cannot store what .* reports/)
  assert.match((await why()).summary, /fails after ten minutes .*\. It does not while that is as others hold its rows/)
  await c.db.unsafe('drop trigger refuse on run_events')
  link = await agent.connect([placementOf(offer)])
  assert.deepEqual(await link.report(offer, 2, line('later')), { kind: 'ack', seq: 2 })
  assert.deepEqual(await codes(), ['EXECUTING'])
  assert.deepEqual(await link.report(offer, 3, end(returned(1))), { kind: 'ack', seq: 3 })
})

test('what cannot be given up either is said to be refused, and to be unusable when it is', async (t) => {
  const errors = errorsOf(t)
  const { mock } = t.mock.method(c.deps.log, 'warn', () => {})
  const offer = await aRunning()
  await c.db.unsafe(`
    create function keep() returns trigger language plpgsql as $$ begin
      raise exception 'as the test says' using errcode = '53100';
    end $$;
    create trigger keep before update on runs for each row when (new.status = 'failed') execute function keep()`)
  for (let n = 0; n < 4; n++) {
    link.send({ t: 'entries', batches: [{ run: offer.run, epoch: offer.epoch, first: 2, entries: [POISON] }] })
    await link.closed()
    link = await agent.connect([placementOf(offer)])
  }
  const refused = mock.calls.filter(({ arguments: [name] }) => name === 'run.entries.refused')
  assert.deepEqual(errors(), [])
  // A second one when a minute ends amid it.
  assert.ok(refused.length === 1 || refused.length === 2, `${refused.length} lines`)
  await c.db.unsafe('drop trigger keep on runs')
  assert.deepEqual(await link.report(offer, 2, POISON, end(returned(1))), { kind: 'ack', seq: 3 })
  assert.deepEqual(errors(), [['run.entries.unusable', offer.run]])
})

test('that a run is given up is said, however much of its agent was refused in that second', async (t) => {
  const errors = errorsOf(t)
  t.mock.method(c.deps.log, 'warn', () => {})
  const offer = await aRunning()
  const { run, epoch } = offer
  const batch = { run, epoch, first: 2, entries: [POISON], runnerId: agent.id, orgId: c.orgId }
  for (let n = 0; n < 10; n++) noteRefused(c.deps, batch, new Error('as the test says'))
  assert.deepEqual(await link.report(offer, 2, POISON), { kind: 'stale' })
  assert.deepEqual(errors(), [['run.entries.unusable', run]])
})

test('each run is named and noted, however many others of its agent are refused time and again', async (t) => {
  const { mock } = t.mock.method(c.deps.log, 'warn', () => {})
  const offer = await aRunning()
  // As many lines as an agent may bring in a second.
  const others = Array.from({ length: 5 }, () => ({ run: newId('run'), epoch: 1 }))
  const second = Math.ceil(performance.now() / 1000)
  for (const later of [0, 1]) {
    const clock = t.mock.method(performance, 'now', () => (second + later) * 1000)
    for (const { run, epoch } of [...others, offer]) {
      const batch = { run, epoch, first: 2, entries: [POISON], runnerId: agent.id, orgId: c.orgId }
      noteRefused(c.deps, batch, new Error('as the test says'))
    }
    clock.mock.restore()
  }
  const refused = mock.calls.filter(({ arguments: [name] }) => name === 'run.entries.refused')
  const named = refused.map(({ arguments: [, facts] }) => [facts?.runId, facts?.unlogged])
  assert.deepEqual(named, [...others.map(({ run }) => [run, undefined]), [offer.run, 1]])
  await untilPolled('the note', async () => {
    const [row] = await c.db`select refused_since from placements where run_id = ${offer.run}`
    return Boolean(row?.refusedSince)
  })
  assert.deepEqual(await link.report(offer, 2, end(returned(1))), { kind: 'ack', seq: 2 })
})

const namesOf = (calls: readonly { arguments: unknown[] }[]) => calls.map(({ arguments: [name] }) => name)

test('a program that still works is to be killed, and what comes behind is stale', async (t) => {
  errorsOf(t)
  const offer = await aRunning()
  link.send({ t: 'entries', batches: [{ run: offer.run, epoch: offer.epoch, first: 2, entries: [POISON] }] })
  link.send({ t: 'entries', batches: [{ run: offer.run, epoch: offer.epoch, first: 3, entries: [line('more')] }] })
  assert.deepEqual([await link.verdict(offer), await link.verdict(offer)], [{ kind: 'stale' }, { kind: 'stale' }])
  assert.deepEqual((await link.heartbeat(1, placementOf(offer))).stale, [placementOf(offer)])
  assert.equal((await runOf(c, offer.run)).status, 'failed')
})

test('a run that was being cancelled ends as cancelled, with the reason in its log', async (t) => {
  errorsOf(t)
  const offer = await aRunning()
  await c.call(ops.runs.cancel, { run: offer.run, reason: '' })
  await link.report(offer, 2, POISON, end({ how: 'cancelled', forced: false }))
  assert.equal((await runOf(c, offer.run)).status, 'cancelled')
  const last = (await logOf(c, offer.run)).at(-1)
  assert.match(JSON.stringify(last?.data.error), /"code":"INTERNAL"/)
})

test('a batch weighs what its entries and their text weigh', () => {
  const weigh = (...entries: Entry[]) => weightOf({ entries, commands: new Map() })
  const text = 'x'.repeat(8192)
  assert.equal(weigh(['start', 1]), 1)
  assert.equal(weigh(['e', 1, 'phase', text], ['e', 1, 'phase', text]), 6)
  assert.equal(weigh(end({ how: 'returned', outputText: text })), 3)
})
