import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { Ending } from '@windlass/shared/model/ending.ts'
import type { Run } from '@windlass/shared/model/run.ts'
import { ops } from '@windlass/shared/ops/index.ts'
import { anAgent, end, type Link, returned, takeNext, type TestAgent } from '../_kit/agent.ts'
import {
  aCoordinator,
  aRun,
  logOf,
  rawCall,
  refusal,
  runOf,
  type TestCoordinator,
  typesOf,
} from '../_kit/coordinator.ts'
import { assertInStep } from '../_kit/in-step.ts'
import { aWorkflow } from '../_kit/workflow.ts'

const COUNTED = {
  type: 'object',
  properties: { total: { type: 'integer' } },
  required: ['total'],
  additionalProperties: false,
}
let c: TestCoordinator
let agent: TestAgent
let link: Link

before(async () => {
  c = await aCoordinator()
  await aWorkflow(c, { slug: 'any' })
  await aWorkflow(c, { slug: 'counting', outputSchema: COUNTED })
  await aWorkflow(c, { slug: 'once', descriptor: { retries: { crash: 0 } } })
  await aWorkflow(c, { slug: 'twice', descriptor: { retries: { crash: 1 } } })
  agent = await anAgent(c)
  link = await agent.connect()
})
after(async () => {
  agent.close()
  await c.stop()
})

/** A run that began and ended like this. */
async function ended(ending: Ending, workflow = 'any'): Promise<Run> {
  await aRun(c, { workflow })
  const offer = await takeNext(agent, link)
  assert.deepEqual(await link.report(offer, 2, end(ending, 12.4)), { kind: 'ack', seq: 2 })
  return runOf(c, offer.run)
}

test('what a program returns is the output of its completed run', async () => {
  const run = await ended(returned({ total: 3 }), 'counting')
  assert.deepEqual([run.status, run.error, run.computeMs, run.attempt], ['completed', null, 12, 1])
  assert.ok(run.createdAt <= run.claimedAt! && run.claimedAt! <= run.startedAt! && run.startedAt! <= run.finishedAt!)
  assert.equal(run.runner?.id, agent.id)
  assert.deepEqual(await c.call(ops.runs.output, { run: run.id }), { output: { total: 3 } })
  const log = await logOf(c, run.id)
  assert.deepEqual(
    log.map((event) => event.type),
    ['run.queued', 'run.pending', 'run.running', 'output', 'run.completed'],
  )
  assert.deepEqual([log[3]?.channel, log[3]?.data], ['output', { output: { total: 3 } }])
  assert.equal((await c.db`select 1 from placements where run_id = ${run.id}`).length, 0)
})

test('a returned value that does not fit fails the run with the path of what is wrong, and is no output', async () => {
  const run = await ended(returned({ total: 'three' }), 'counting')
  assert.deepEqual(
    [run.status, run.error?.code, run.error?.detail],
    ['failed', 'OUTPUT_INVALID', { path: 'output.total' }],
  )
  assert.match(run.error!.message, /output\.total.*declares/)
  assert.deepEqual(await c.call(ops.runs.output, { run: run.id }), { output: null })
  assert.deepEqual((await typesOf(c, run.id)).slice(-2), ['run.running', 'run.failed'])
})

test('a value that was refused is read by who asks for it, whole or in parts', async () => {
  const { id, error } = await ended(returned({ total: 'three' }), 'counting')
  assert.match(error!.message, new RegExp(`not lost: \`windlass runs output ${id} --refused\``))
  const ask = { run: id, refused: true }
  assert.deepEqual(await c.call(ops.runs.output, ask), { output: { total: 'three' } })
  const part = await c.call(ops.runs.output, { ...ask, offset: 2 })
  assert.deepEqual(part, { output: 'total":"three"}', part: { offset: 2, chars: 17, nextOffset: null } })
})

test('nothing else is answered as refused', async () => {
  const refusedOf = (run: string) => c.call(ops.runs.output, { run, refused: true })
  const fitting = await ended(returned({ total: 3 }), 'counting')
  const threw = await ended({ how: 'threw', error: { name: 'Error', message: 'no' } }, 'counting')
  const noJson = await ended({ how: 'returned', outputText: '{"total":' }, 'counting')
  assert.doesNotMatch(noJson.error!.message, /--refused/)
  for (const { id } of [fitting, threw, noJson]) assert.deepEqual(await refusedOf(id), { output: null })
  const queued = await aRun(c, { workflow: 'counting' })
  await assert.rejects(refusedOf(queued.id), refusal('RUN_NOT_FINISHED'))
  await c.call(ops.runs.cancel, { run: queued.id, reason: '' })
})

test('an output that is no JSON fails its run and nobody else', async () => {
  for (const workflow of ['any', 'counting']) {
    const run = await ended({ how: 'returned', outputText: '{"total":' }, workflow)
    assert.deepEqual([run.status, run.error?.code], ['failed', 'OUTPUT_INVALID'])
  }
  assert.equal((await ended(returned(1))).status, 'completed')
})

test('an output keeps its characters, on one line', async () => {
  const text = '{\n  "b": "\\u0000\\ud800 \\n",\r\n  "a": 1\n}'
  const run = await ended({ how: 'returned', outputText: text })
  const answer = await (await rawCall(c, 'GET', `/v1/runs/${run.id}/output`)).text()
  assert.deepEqual(JSON.parse(answer), { output: JSON.parse(text) as unknown })
  assert.doesNotMatch(answer, /[\n\r]/)
})

test('an output too large for an event is named in the log and whole at /output', async () => {
  const output = 'x'.repeat(100_000)
  const run = await ended(returned(output))
  const event = (await logOf(c, run.id)).find(({ type }) => type === 'output')
  assert.deepEqual(event?.data, { truncated: true, bytes: 100_002, limitBytes: 64 * 1024 })
  assert.deepEqual(await c.call(ops.runs.output, { run: run.id }), { output })
})

test('the output of a run that has not finished is refused', async () => {
  const { id } = await aRun(c, { workflow: 'any' })
  await assert.rejects(c.call(ops.runs.output, { run: id }), refusal('RUN_NOT_FINISHED'))
  await c.call(ops.runs.cancel, { run: id })
})

test('a program that throws fails its run with its own words, code and stack', async () => {
  const stack = 'TypeError: no such file\n    at run (index.ts:3:9)'
  const run = await ended({
    how: 'threw',
    error: { name: 'TypeError', message: 'no such file', code: 'ENOENT', stack, detail: { file: 'a' } },
  })
  assert.deepEqual(run.error, {
    code: 'ENOENT',
    message: 'no such file',
    detail: { file: 'a', name: 'TypeError', stack },
  })
  assert.equal(run.status, 'failed')
  const last = (await logOf(c, run.id)).at(-1)
  assert.deepEqual([last?.type, last?.data], ['run.failed', { error: { code: 'ENOENT', message: 'no such file' } }])
})

test('what is odd about a thrown error is put right', async () => {
  const run = async (error: unknown) =>
    (await ended({ how: 'threw', error: error as { name: string; message: string } })).error
  assert.deepEqual(await run({ name: 'Odd', message: '', code: 'not a code' }), {
    code: 'PROGRAM_FAILED',
    message: 'Odd',
    detail: { name: 'Odd' },
  })
  assert.deepEqual(await run({}), { code: 'PROGRAM_FAILED', message: 'Error', detail: { name: 'Error' } })
  assert.deepEqual(await run({ name: { toString: 1 }, message: 7, code: 5, stack: [], detail: 'x' }), {
    code: 'PROGRAM_FAILED',
    message: 'Error',
    detail: { name: 'Error' },
  })
  assert.equal((await run({ name: 'E', message: '\u0000 and \ud800' }))?.message, '\u0000 and \ud800')
  assert.equal((await run({ name: 'E', message: 'x'.repeat(50_000) }))?.message.length, 8000)
})

test('a program that exits says with which code, one out of time how long it had', async () => {
  const exited = await ended({ how: 'exited', exitCode: 3 })
  assert.deepEqual(
    [exited.status, exited.error?.code, exited.error?.detail],
    ['failed', 'PROGRAM_EXITED', { exitCode: 3 }],
  )
  const late = await ended({ how: 'timed-out', timeoutMs: 5000 })
  assert.deepEqual(
    [late.status, late.error?.code, late.error?.detail],
    // What the descriptor allows: the agent was told what was left of it.
    ['failed', 'RUN_TIMED_OUT', { timeoutMs: 3_600_000 }],
  )
  for (const error of [exited.error, late.error]) assert.match(error!.message, /\b(Return|Raise)\b/)
})

const CRASHES: [string, Ending, RegExp][] = [
  ['killed by a signal', { how: 'killed', signal: 'SIGKILL' }, /SIGKILL/],
  ['lost', { how: 'lost', reason: 'the disk is full' }, /the disk is full/],
  ['stopped by its agent though nobody asked', { how: 'cancelled', forced: true }, /its agent stopped it/],
]
for (const [name, ending, reason] of CRASHES) {
  test(`a process that is ${name} is started again from the top, as attempt 2`, async () => {
    const run = await ended(ending)
    assert.deepEqual([run.status, run.attempt, run.error, run.finishedAt], ['queued', 2, null, null])
    const log = await logOf(c, run.id)
    assert.deepEqual(
      log.slice(-3).map((event) => event.type),
      ['run.running', 'run.restarted', 'run.queued'],
    )
    const { attempt, lostAttempt, reason: why } = log.at(-2)!.data
    assert.deepEqual([attempt, lostAttempt], [2, 1])
    assert.match(why as string, reason)
    const offer = await takeNext(agent, link)
    assert.deepEqual([offer.run, offer.attempt, offer.epoch], [run.id, 2, 2])
    await link.report(offer, 2, end(returned('at last'), 3))
    const final = await runOf(c, run.id)
    assert.deepEqual([final.status, final.attempt, final.computeMs], ['completed', 2, 15])
  })
}

test('a run is given up after as many restarts as its descriptor allows', async () => {
  await aRun(c, { workflow: 'twice' })
  const offers = []
  for (const attempt of [1, 2]) {
    const offer = await takeNext(agent, link)
    assert.equal(offer.attempt, attempt)
    offers.push(offer)
    await link.report(offer, 2, end({ how: 'killed', signal: 'SIGSEGV' }))
  }
  const run = await runOf(c, offers[0]!.run)
  assert.deepEqual(
    [run.status, run.attempt, run.error?.code, run.error?.detail?.attempts],
    ['failed', 2, 'RUN_CRASHED', 2],
  )
  assert.match(run.error!.message, /2 times.*SIGSEGV/)
  assert.deepEqual(
    (await typesOf(c, run.id)).filter((type) => type !== 'run.pending'),
    ['run.queued', 'run.running', 'run.restarted', 'run.queued', 'run.running', 'run.failed'],
  )
})

test('with no restarts allowed the first crash is the last, also before the program began', async () => {
  assert.equal((await ended({ how: 'killed', signal: 'SIGKILL' }, 'once')).error?.code, 'RUN_CRASHED')
  await aRun(c, { workflow: 'once' })
  const [offer] = await agent.poll()
  await link.accept(offer!)
  await link.report(offer!, 1, end({ how: 'lost', reason: 'the bundle did not arrive' }))
  const run = await runOf(c, offer!.run)
  assert.deepEqual([run.status, run.error?.code, run.startedAt], ['failed', 'RUN_CRASHED', null])
})

test('a run that could not be prepared is offered again later, uses up no attempt, and says why', async () => {
  await aRun(c, { workflow: 'once' })
  const [offer] = await agent.poll()
  const { run: id, epoch } = offer!
  await link.accept(offer!)
  const putOff = { how: 'unready', reason: 'no secrets' } as const
  assert.deepEqual(await link.report({ run: id, epoch }, 1, end(putOff)), { kind: 'ack', seq: 1 })
  const run = await runOf(c, id)
  assert.deepEqual([run.status, run.attempt], ['queued', 1])
  assert.deepEqual((await logOf(c, id)).at(-1)?.data, { attempt: 1, reason: 'no secrets' })
  const { why } = await c.call(ops.runs.why, { run: id })
  assert.deepEqual(
    why.causes.map((cause) => cause.code),
    ['PUT_OFF'],
  )
  await c.db`update timers set due_at = now() where run_id = ${id}`
  c.deps.timers.expect(0)
  const again = await takeNext(agent, link)
  assert.deepEqual([again.run, again.attempt], [id, 1])
  await link.report(again, 2, end(returned(1)))
  assert.equal((await runOf(c, id)).status, 'completed')
})

test('a run that threw before its program began is tried again, and is not said to be put off', async () => {
  const error = { max: 1, delay: '1m' }
  await aWorkflow(c, { slug: 'patient', descriptor: { retries: { error } } })
  await aRun(c, { workflow: 'patient' })
  const [offer] = await agent.poll()
  await link.accept(offer!)
  await link.report(offer!, 1, end({ how: 'threw', error: { name: 'Error', message: 'no bundle' } }))
  const { why } = await c.call(ops.runs.why, { run: offer!.run })
  assert.deepEqual(
    why.causes.map((cause) => cause.code),
    ['RETRY_BACKOFF'],
  )
})

test('a program whose beginning was not reported may still have returned', async () => {
  await aRun(c, { workflow: 'any' })
  const [offer] = await agent.poll()
  await link.accept(offer!)
  assert.deepEqual(await link.report(offer!, 1, end(returned(7))), { kind: 'ack', seq: 1 })
  const run = await runOf(c, offer!.run)
  assert.equal(run.status, 'completed')
  assert.ok(run.startedAt)
  assert.deepEqual((await typesOf(c, run.id)).slice(1), ['run.pending', 'run.running', 'output', 'run.completed'])
})

test('lists by status and tag find all of these runs', () => assertInStep(c.db, c.orgId))
