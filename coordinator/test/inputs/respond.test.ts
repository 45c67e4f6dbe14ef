import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { newId } from '@windlass/shared/ids.ts'
import type { PendingInput } from '@windlass/shared/model/input.ts'
import { ops } from '@windlass/shared/ops/index.ts'
import type { ApiError } from '@windlass/shared/ops/api-error.ts'
import { fireDue } from '../../engine/commit/fire.ts'
import { anAgent, end } from '../_kit/agent.ts'
import { aCoordinator, anOrg, aRun, rawCall, refusal, runOf, type TestCoordinator } from '../_kit/coordinator.ts'
import { pagesOf } from '../_kit/pages.ts'
import { accepted, aParkedRun, anEvictedRun, type Crew, question } from '../_kit/waiting.ts'
import { aWorkflow } from '../_kit/workflow.ts'

let c: TestCoordinator
let crew: Crew

before(async () => {
  c = await aCoordinator()
  await aWorkflow(c, { slug: 'any' })
  const agent = await anAgent(c, { slots: 50 })
  crew = { c, agent, link: await agent.connect() }
})
after(async () => {
  crew.agent.close()
  await c.stop()
})

const respond = async (input: string, answer: unknown, at = c) =>
  (await at.call(ops.inputs.respond, { input: input, answer })).input

async function askedBy(run: string): Promise<PendingInput> {
  const { inputs } = await c.call(ops.inputs.list, { org: c.org, run: run })
  assert.equal(inputs.length, 1)
  return inputs[0]!
}

/** An open question of a run whose process is parked. */
async function anOpenQuestion(facts: Parameters<typeof question>[0] = {}) {
  const offer = await aParkedRun(crew, { workflow: 'any' }, question(facts))
  return { offer, input: await askedBy(offer.run) }
}

const entryOf = async (run: string) => {
  const [row] = await c.db<{ state: string; result: string }[]>`
    select state, result from journal where run_id = ${run} and n = 1`
  return row
}

const timersOf = (run: string) => c.db`select 1 from timers where run_id = ${run}`

const faultOf = (work: Promise<unknown>): Promise<ApiError> =>
  work.then(
    () => assert.fail('it was not refused'),
    (error: ApiError) => error,
  )

test('an answer closes the question, completes the entry of the journal and reaches the parked process', async () => {
  const { offer, input } = await anOpenQuestion({ timeoutMs: 60_000 })
  assert.deepEqual([input.status, input.prompt, input.schema, input.answeredBy], ['open', 'Ship it?', null, null])
  assert.equal(input.dueAt! - input.createdAt, 60_000)
  assert.equal((await runOf(c, offer.run)).waiting?.inputId, input.id)
  assert.equal((await timersOf(offer.run)).length, 1)

  const answered = await respond(input.id, { approved: true, by: 'a\u0000b' })
  assert.deepEqual([answered.status, answered.answer], ['answered', { approved: true, by: 'a\u0000b' }])
  assert.ok(answered.closedAt! >= answered.createdAt)
  assert.match(answered.answeredBy!, /^key_/)
  const [wake] = (await crew.link.next('wake')).runs
  const result = JSON.stringify({ approved: true, by: 'a\u0000b' })
  assert.deepEqual(wake, { run: offer.run, epoch: offer.epoch, completions: [{ n: 1, state: 'done', result }] })
  assert.deepEqual(await entryOf(offer.run), { state: 'done', result })
  assert.equal((await timersOf(offer.run)).length, 0)
  assert.deepEqual((await c.call(ops.inputs.get, { input: input.id })).input, answered)
})

test('an answer brings a run without a process back into the queue, to be continued', async () => {
  const { run } = await anEvictedRun(crew, { workflow: 'any' }, question())
  const { id } = await askedBy(run)
  assert.deepEqual(await crew.agent.poll(1, 1), [])
  await respond(id, 'yes')
  const offer = await accepted(crew)
  assert.deepEqual([offer.run, offer.replay, offer.attempt], [run, true, 1])
})

test('an answer that does not fit is refused with its path and what was expected, and the question stays open', async () => {
  const address = { type: 'object', properties: { zip: { type: 'string' } }, required: ['zip'] }
  const schema = { type: 'object', properties: { address }, required: ['address'] }
  const { offer, input } = await anOpenQuestion({ schemaText: JSON.stringify(schema) })
  assert.deepEqual(input.schema, schema)
  const fault = await faultOf(respond(input.id, { address: { zip: 8000 } }))
  assert.deepEqual([fault.code, fault.detail?.['path']], ['VALIDATION_FAILED', 'answer.address.zip'])
  assert.match(fault.message, /answer\.address\.zip: must be a string, but is/)
  await assert.rejects(respond(input.id, {}), refusal('VALIDATION_FAILED', 'answer.address'))
  await assert.rejects(respond(input.id, null), refusal('VALIDATION_FAILED', 'answer'))
  assert.equal((await askedBy(offer.run)).status, 'open')
  assert.equal((await respond(input.id, { address: { zip: '8000' } })).status, 'answered')
})

test('an answer that is missing or larger than 1 MiB is refused, and one of 1 MiB is taken', async () => {
  const { input } = await anOpenQuestion()
  const path = `/v1/inputs/${input.id}/respond`
  assert.equal((await rawCall(c, 'POST', path, '{}')).status, 400)
  await assert.rejects(respond(input.id, 'x'.repeat(1024 * 1024 - 1)), refusal('PAYLOAD_TOO_LARGE', 'answer'))
  const most = 'x'.repeat(1024 * 1024 - 2)
  assert.equal((await respond(input.id, most)).answer, most)
  // A list leaves it out.
  const { inputs } = await c.call(ops.inputs.list, { org: c.org, run: input.run.id, status: ['answered'] })
  assert.deepEqual([inputs[0]?.id, inputs[0]?.answer], [input.id, undefined])
})

test('a question whose schema is none says so to whoever answers', async () => {
  const { offer, input } = await anOpenQuestion()
  // Programs are told when they ask; this one got past that.
  await c.db`update inputs set schema = '{"type":"nonsense"}' where id = ${input.id}`
  const fault = await faultOf(respond(input.id, 1))
  assert.deepEqual([fault.code, fault.detail?.['path']], ['VALIDATION_FAILED', 'schema'])
  assert.equal((await runOf(c, offer.run)).status, 'awaiting_input')
})

test('the second answer is told who was first, and when', async () => {
  const { input } = await anOpenQuestion()
  const first = await respond(input.id, 1)
  const fault = await faultOf(respond(input.id, 2))
  assert.deepEqual([fault.status, fault.code], [409, 'INPUT_CLOSED'])
  const { status, answeredBy, answeredAt } = fault.detail!
  assert.deepEqual([status, answeredBy, answeredAt], ['answered', first.answeredBy, first.closedAt])
  assert.match(fault.message, /was answered by key_/)
})

test('of twenty answers at once, over two coordinators, one wins', async () => {
  const second = await c.another()
  const { offer, input } = await anOpenQuestion()
  const answers = Array.from({ length: 20 }, (_, i) => respond(input.id, i, i % 2 ? second : c))
  const results = await Promise.allSettled(answers)
  const [winner, ...others] = results.filter((result) => result.status === 'fulfilled')
  assert.ok(winner && others.length === 0)
  for (const result of results) if (result.status === 'rejected') refusal('INPUT_CLOSED')(result.reason as ApiError)
  assert.equal((await entryOf(offer.run))?.result, JSON.stringify(winner.value.answer))
})

test('an answer and the end of the time at once: one of them wins, and the other says so', async () => {
  const won = { answered: 0, timed_out: 0 }
  for (let round = 0; round < 12; round++) {
    const { offer, input } = await anOpenQuestion({ timeoutMs: 3_600_000, onTimeoutText: '"late"' })
    await c.db`update timers set due_at = now() where run_id = ${offer.run}`
    const [answer] = await Promise.allSettled([respond(input.id, 'early'), fireDue(c.deps)])
    const { input: closed } = await c.call(ops.inputs.get, { input: input.id })
    const status = closed.status as keyof typeof won
    won[status]++
    assert.equal(answer.status === 'fulfilled', status === 'answered')
    assert.equal((await entryOf(offer.run))?.result, status === 'answered' ? '"early"' : '"late"')
    if (answer.status === 'rejected') assert.equal((answer.reason as ApiError).detail?.['status'], 'timed_out')
    assert.equal((await timersOf(offer.run)).length, 0)
  }
  assert.equal(won.answered + won.timed_out, 12)
})

test('a question that timed out or whose run has ended takes no answer', async () => {
  const late = await anOpenQuestion({ timeoutMs: 3_600_000 })
  await c.db`update timers set due_at = now() where run_id = ${late.offer.run}`
  await fireDue(c.deps)
  assert.equal((await faultOf(respond(late.input.id, 1))).detail?.['status'], 'timed_out')
  assert.equal((await entryOf(late.offer.run))?.state, 'failed')

  const { run } = await anEvictedRun(crew, { workflow: 'any' }, question())
  const { id } = await askedBy(run)
  await c.call(ops.runs.cancel, { run })
  const fault = await faultOf(respond(id, 1))
  assert.deepEqual([fault.code, fault.detail?.['status']], ['INPUT_CLOSED', 'closed'])
})

test('a run that is being cancelled takes no answer any more', async () => {
  const { offer, input } = await anOpenQuestion()
  await c.call(ops.runs.cancel, { run: offer.run })
  assert.equal((await runOf(c, offer.run)).status, 'cancelling')
  await assert.rejects(respond(input.id, 1), refusal('INPUT_CLOSED'))
  assert.equal((await entryOf(offer.run))?.state, 'open')
  await crew.link.report(offer, 4, end({ how: 'cancelled', forced: false }))
  await assert.rejects(respond(input.id, 1), refusal('INPUT_CLOSED'))
})

test("another org's question looks absent, and stays open", async () => {
  const { offer, input } = await anOpenQuestion()
  const { apiKey, slug } = await anOrg(c)
  await assert.rejects(c.call(ops.inputs.respond, { input: input.id, answer: 1 }, { apiKey }), refusal('NOT_FOUND'))
  await assert.rejects(c.call(ops.inputs.get, { input: input.id }, { apiKey }), refusal('NOT_FOUND'))
  assert.deepEqual((await c.call(ops.inputs.list, { org: slug }, { apiKey })).inputs, [])
  await assert.rejects(respond(newId('inp'), 1), refusal('NOT_FOUND'))
  assert.equal((await askedBy(offer.run)).status, 'open')
})

test('a list is newest first, in pages, the open ones unless a status is named', async () => {
  const run = await aParkedRun(
    crew,
    { workflow: 'any' },
    question(),
    question({ prompt: '2' }),
    question({ prompt: '3' }),
  )
  const list = (query: object = {}) => c.call(ops.inputs.list, { org: c.org, run: run.run, ...query })
  const all = (await list()).inputs
  assert.equal(all.length, 3)
  assert.deepEqual(
    all
      .map(({ id }) => id)
      .toSorted()
      .toReversed(),
    all.map(({ id }) => id),
  )
  const first = await list({ limit: 2 })
  const second = await list({ limit: 2, cursor: first.nextCursor! })
  assert.deepEqual([...first.inputs, ...second.inputs], all)
  assert.equal(second.nextCursor, null)
  await respond(all[0]!.id, 1)
  assert.equal((await list()).inputs.length, 2)
  assert.deepEqual(
    (await list({ status: ['answered'] })).inputs.map(({ id }) => id),
    [all[0]!.id],
  )
  assert.equal((await list({ status: ['answered', 'open'] })).inputs.length, 3)
  await assert.rejects(list({ cursor: 'x' }), refusal('VALIDATION_FAILED', 'cursor'))
  const other = await aRun(c, { workflow: 'any' })
  assert.deepEqual((await list({ run: other.id })).inputs, [])
  await c.call(ops.runs.cancel, { run: other.id })
})

test('a page of questions with long schemas has fewer of them, and leads on to the others', async () => {
  const asked = Array.from({ length: 5 }, (_, n) => question({ prompt: String(n) }))
  const run = await aParkedRun(crew, { workflow: 'any' }, ...asked)
  await c.db`
    update inputs set schema = json_build_object('title', repeat('x', 400000))::text where run_id = ${run.run}`
  const pages = await pagesOf(
    (page) => c.call(ops.inputs.list, { org: c.org, run: run.run, limit: 100, ...page }),
    ({ inputs }) => inputs.map(({ prompt }) => prompt),
  )
  assert.deepEqual(pages, [['4', '3'], ['2', '1'], ['0']])
})
