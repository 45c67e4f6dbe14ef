import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { ops } from '@windlass/shared/ops/index.ts'
import type { Entry, Offer } from '@windlass/shared/wire/agent.ts'
import type { JsonSchema } from '../../workflows/json-schema.ts'
import { aRunningAgent, anAgent, end, line, type Link, returned, takeNext, type TestAgent } from '../_kit/agent.ts'
import { anOrg, aCoordinator, aCoordinatorOfItsOwn, aRun, asOwner } from '../_kit/coordinator.ts'
import { logOf, rawCall, refusal, runOf } from '../_kit/coordinator.ts'
import type { TestCoordinator } from '../_kit/coordinator.ts'
import { calls, opened, parked, wakeOf } from '../_kit/journal.ts'
import { aWorkflow } from '../_kit/workflow.ts'

/** An org that sends hostile values, and another that only wants its runs to be done. */
let c: TestCoordinator
let other: TestCoordinator
let agent: TestAgent
let link: Link
let otherAgent: TestAgent
let otherLink: Link

before(async () => {
  c = await aCoordinator()
  other = asOwner(c, await anOrg(c))
  await aWorkflow(c, { slug: 'rules', inputSchema: RULES })
  await aWorkflow(c, { slug: 'returns-rules', outputSchema: RULES })
  await aWorkflow(c, { slug: 'any' })
  await aWorkflow(other, { slug: 'any' })
  agent = await anAgent(c, { slots: 20 })
  link = await agent.connect()
  otherAgent = await anAgent(other)
  otherLink = await otherAgent.connect()
})
after(() => c?.stop())

const rule: JsonSchema = {
  type: 'object',
  properties: { next: { anyOf: [{ $ref: '#/$defs/Group' }, { $ref: '#/$defs/Rule' }] }, value: { type: 'string' } },
}
/** `interface Group { next?: Group | Rule; value?: string }`, and a rule likewise. */
const RULES: JsonSchema = { $ref: '#/$defs/Group', $defs: { Group: rule, Rule: rule } }
const nested = (levels: number, leaf: unknown): unknown => (levels === 0 ? leaf : { next: nested(levels - 1, leaf) })
/** Of some 200 bytes: looking at all of its ways would take longer than the machine lasts. */
const ENDLESS = nested(22, { value: 5 })
/** The same, for a pattern. */
const HANGS = `${'a'.repeat(60)}b`
const PATTERN = JSON.stringify({ type: 'string', pattern: '^(a|a)*$' })

async function aRunning(workflow: string): Promise<Offer> {
  await aRun(c, { workflow })
  return takeNext(agent, link)
}

/** Health is told, and a run of the other org goes from its trigger to its end. */
async function goesOn(): Promise<void> {
  assert.equal((await rawCall({ url: c.url }, 'GET', '/healthz')).status, 200)
  await aRun(other, { workflow: 'any' })
  const offer = await takeNext(otherAgent, otherLink)
  await otherLink.report(offer, 2, line('hello'), end(returned(1)))
  assert.equal((await runOf(other, offer.run)).status, 'completed')
}

const asksSlowly = (n: number): Entry =>
  opened(n, {
    for: 'input',
    prompt: 'Go on?',
    schemaText: PATTERN,
    timeoutMs: 60_000,
    onTimeoutText: JSON.stringify(HANGS),
  })

const questions = (count: number) => Array.from({ length: count }, (_, n) => asksSlowly(n + 1))

test('an input of 200 bytes that would be looked at for ever is refused, and the others go on meanwhile', async () => {
  const refused = assert.rejects(aRun(c, { workflow: 'rules', input: ENDLESS }), refusal('VALIDATION_FAILED', 'input'))
  await goesOn()
  await refused
  const honest = await aRun(c, { workflow: 'rules', input: nested(30, { value: 'x' }) })
  await c.call(ops.runs.cancel, { run: honest.id, reason: '' })
})

test('a returned value that would be looked at for ever fails its run, and the others go on meanwhile', async () => {
  const offer = await aRunning('returns-rules')
  const ended = link.report(offer, 2, end(returned(ENDLESS)))
  await goesOn()
  assert.deepEqual(await ended, { kind: 'ack', seq: 2 })
  const { status, error } = await runOf(c, offer.run)
  assert.deepEqual([status, error?.code, error?.detail?.['path']], ['failed', 'OUTPUT_INVALID', 'output'])
  assert.match(error!.message, /output: takes longer than 250 ms to be checked/)
  // It was paid for: what nobody could check is there to be read.
  assert.deepEqual(await c.call(ops.runs.output, { run: offer.run, refused: true }), { output: ENDLESS })
})

test('a coordinator that is stopped with such a value under way leaves it to the next, which lives on', async () => {
  const first = await c.another()
  const here = agent.at(first)
  const linked = await here.connect()
  await aRun(first, { workflow: 'returns-rules' })
  const offer = await takeNext(here, linked)
  linked.send({
    t: 'entries',
    batches: [{ run: offer.run, epoch: offer.epoch, first: 2, entries: [...questions(400), end(returned(1))] }],
  })
  // Its own word is answered after the entries were heard.
  await linked.heartbeat(1, [offer.run, offer.epoch])
  await first.stop()
  assert.equal((await runOf(c, offer.run)).status, 'running', 'what is to be judged is not waited for')
  const again = await agent.connect([[offer.run, offer.epoch]])
  assert.deepEqual(await again.report(offer, 2, end(returned(ENDLESS))), { kind: 'ack', seq: 2 })
  assert.equal((await runOf(c, offer.run)).error?.code, 'OUTPUT_INVALID')
  await goesOn()
  link = again
})

test('hundreds of questions that take for ever keep nobody from going on, and end their run', async () => {
  const offer = await aRunning('any')
  const asked = link.report(offer, 2, ...questions(400))
  let isOver = false
  void asked.then(() => (isOver = true))
  await goesOn()
  assert.equal(isOver, false)
  assert.equal((await asked).kind, 'ack')
  const { status, error } = await runOf(c, offer.run)
  assert.deepEqual([status, error?.code], ['failed', 'JOURNAL_UNREADABLE'])
  assert.match(error!.message, /used up their 2000 ms of checking within a minute/)
})

test('what one run says is taken in its order, and others of the same agent need not wait for it', async () => {
  const [slow, quick] = [await aRunning('any'), await aRunning('any')]
  const batch = (offer: Offer, first: number, ...entries: Entry[]) => ({
    run: offer.run,
    epoch: offer.epoch,
    first,
    entries,
  })
  link.send({
    t: 'entries',
    batches: [
      batch(slow, 2, line('before'), asksSlowly(1), asksSlowly(2), line('between')),
      batch(quick, 2, line('a'), end(returned(1))),
    ],
  })
  link.send({ t: 'entries', batches: [batch(slow, 6, line('after')), batch(slow, 7, end(returned(2)))] })
  assert.deepEqual(await link.verdict(quick), { kind: 'ack', seq: 3 })
  for (const seq of [5, 6, 7]) assert.deepEqual(await link.verdict(slow), { kind: 'ack', seq })
  const texts = (await logOf(c, slow.run)).flatMap(({ type, data }) => (type === 'log.stdout' ? [data['text']] : []))
  assert.deepEqual(texts, ['before', 'between', 'after'])
  assert.equal((await runOf(c, slow.run)).status, 'completed')
})

test('an answer that would be looked at for ever is refused, and the question stays open', async () => {
  const offer = await aRunning('any')
  const ask = { for: 'input', prompt: 'Go on?', schemaText: PATTERN, timeoutMs: null, onTimeoutText: null } as const
  await link.report(offer, 2, opened(1, ask), parked('input'))
  const { inputs } = await c.call(ops.inputs.list, { org: c.org, run: offer.run })
  const input = inputs[0]!.id
  const refused = assert.rejects(
    c.call(ops.inputs.respond, { input, answer: HANGS }),
    refusal('VALIDATION_FAILED', 'answer'),
  )
  await goesOn()
  await refused
  assert.equal((await c.call(ops.inputs.respond, { input, answer: 'aaa' })).input.status, 'answered')
})

test('a child whose input would be looked at for ever is not called, and the program hears of it', async () => {
  const offer = await aRunning('any')
  const called = link.report(offer, 2, calls(1, 'rules', ENDLESS), parked('child'))
  await goesOn()
  await called
  const { completions } = await wakeOf(link, { run: offer.run })
  assert.match(JSON.stringify(completions), /CALL_REFUSED.*input: takes longer than 250 ms/)
})

test('where nothing can be judged no run is ended for it: its agent comes again', async (t) => {
  const own = await aCoordinatorOfItsOwn()
  t.after(() => own.stop())
  const { mock } = t.mock.method(own.deps.log, 'warn', () => {})
  await aWorkflow(own, { slug: 'returns-rules', outputSchema: RULES })
  await aWorkflow(own, { slug: 'rules', inputSchema: RULES })
  await aRun(own, { workflow: 'returns-rules' })
  const held = await aRunningAgent(own)
  await own.deps.judge.close()
  await assert.rejects(held.link.report(held.offer, 2, end(returned({}))), /the socket was closed with 1013/)
  assert.equal((await runOf(own, held.offer.run)).status, 'running')
  assert.ok(mock.calls.some(({ arguments: [name] }) => name === 'agent.frame.failed'))
  // Nor is a call refused for good, which the journal would keep.
  const again = await held.agent.connect([[held.offer.run, held.offer.epoch]])
  const called = again.report(held.offer, 2, calls(1, 'rules', ENDLESS))
  await assert.rejects(called, /the socket was closed with 1013/)
  assert.equal((await own.db`select 1 from journal where run_id = ${held.offer.run}`).length, 0)
})
