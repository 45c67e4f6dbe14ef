import assert from 'node:assert/strict'
import test from 'node:test'
import type { ThrownError } from '@windlass/shared/model/ending.ts'
import type { JournalOp } from '@windlass/shared/wire/journal.ts'
import type { LogData } from '@windlass/shared/wire/program.ts'
import { aHost, opened, ops } from './host-process.ts'

test('a program that sleeps parks, wakes and goes on', async (t) => {
  const host = await aHost(t, `await sleep('1h')\nlog('awake')\nreturn 'done'`)
  host.start()
  const { entry, ask } = await opened(host)
  assert.deepEqual(ask, { for: 'sleep', ms: 3_600_000 })
  assert.deepEqual([entry.n, entry.kind, entry.parent, entry.occurrence], [1, 'sleep', '', 1])
  assert.equal(entry.site, 'index.ts:3:7')
  assert.deepEqual(await host.parked(), { waitsFor: 'sleep', heard: 0 })
  host.send({ t: 'wake', completions: [{ n: 1, state: 'done', result: 'null' }] })
  assert.equal(await host.next('returned'), '"done"')
})

test('a step resolves when the journal has its result', async (t) => {
  const host = await aHost(
    t,
    `const at = await step('now', () => new Date(5))\nreturn [at instanceof Date, at.getTime()]`,
  )
  host.start()
  const op = await host.nextOp()
  assert.ok(op.op === 'close' && op.state === 'done' && op.entry.name === 'now')
  assert.equal(
    host.seen.some(({ name }) => name === 'returned'),
    false,
  )
  host.send({ t: 'kept', count: 1 })
  assert.equal(await host.next('returned'), '[true,5]')
})

test('what only keeps the process does not count as work in flight', async (t) => {
  const host = await aHost(
    t,
    `const busy = (ms) => new Promise((resolve) => setTimeout(resolve, ms))
     await Promise.all([step('a', () => 1), step('b', () => 2)])
     const working = busy(100)
     await step('c', () => 3)
     await working
     await sleep('1h')`,
  )
  host.start()
  await host.nextOp()
  host.send({ t: 'kept', count: 1 })
  await host.nextOp()
  host.send({ t: 'kept', count: 2 })
  // The journal hears that the first of two was given before it hears what follows.
  assert.deepEqual([(await host.nextOp()).op, (await host.nextOp()).op], ['deliver', 'close'])
  host.send({ t: 'kept', count: 4 })
  await host.next('park')
  const list = ops(host).flatMap((op) => (op.op === 'deliver' ? op.list : []))
  assert.deepEqual(
    list.map(([, n, , idle]) => [n, idle]),
    [
      [1, 1],
      [2, 1],
      [3, 0],
    ],
  )
})

test('the same wake twice wakes once, and a wake for nothing parks again, saying how many were read', async (t) => {
  const host = await aHost(t, `await sleep('1h')\nawait sleep('2h')\nreturn 'done'`)
  host.start()
  assert.equal((await host.parked()).heard, 0)
  const wake = { t: 'wake' as const, completions: [{ n: 1, state: 'done' as const, result: 'null' }] }
  host.send(wake)
  assert.equal((await host.parked()).heard, 1)
  host.send(wake)
  assert.equal((await host.parked()).heard, 2)
  host.send({ t: 'wake', completions: [{ n: 2, state: 'done', result: 'null' }] })
  assert.equal(await host.next('returned'), '"done"')
  const delivered = ops(host).flatMap((op) => (op.op === 'deliver' ? op.list : []))
  assert.deepEqual(delivered, [[1, 1, 1, 1]])
})

test('a question comes with its schema, and the answer goes to the program', async (t) => {
  const host = await aHost(
    t,
    `return requestInput({ prompt: 'Pay?', schema: { type: 'boolean' }, timeout: '2d', onTimeout: { answer: false } })`,
  )
  host.start()
  const { ask } = await opened(host)
  assert.deepEqual(ask, {
    for: 'input',
    prompt: 'Pay?',
    schemaText: '{"type":"boolean"}',
    timeoutMs: 172_800_000,
    onTimeoutText: 'false',
  })
  assert.deepEqual(await host.parked(), { waitsFor: 'input', heard: 0 })
  host.send({ t: 'wake', completions: [{ n: 1, state: 'done', result: 'true' }] })
  assert.equal(await host.next('returned'), 'true')
})

test('a failed child is told from other errors', async (t) => {
  const host = await aHost(
    t,
    `try { await workflows.call('other', { a: 1 }, { tags: ['x'] }) }
     catch (error) { return [error instanceof RunFailedError, error.runId, error.error.message] }`,
  )
  host.start()
  const { ask } = await opened(host)
  assert.ok(ask.for === 'child' && ask.workflow === 'other' && ask.inputText === '{"a":1}' && ask.priority === 0)
  assert.deepEqual(await host.parked(), { waitsFor: 'child', heard: 0 })
  const error = { code: 'PROGRAM_FAILED', message: 'boom' }
  const failure = { name: 'RunFailedError', code: 'RUN_FAILED', message: 'boom', detail: { runId: 'run_9', error } }
  host.send({ t: 'wake', completions: [{ n: 1, state: 'failed', result: JSON.stringify(failure) }] })
  assert.equal(await host.next('returned'), '[true,"run_9","boom"]')
})

test('a refused call that nobody catches fails the run with what was wrong', async (t) => {
  const host = await aHost(t, `return workflows.call('nobody')`)
  host.start()
  await host.next('park')
  const detail = { code: 'NOT_FOUND', workflow: 'nobody' }
  const failure = { name: 'CallRefusedError', code: 'CALL_REFUSED', message: 'There is no workflow nobody.', detail }
  host.send({ t: 'wake', completions: [{ n: 1, state: 'failed', result: JSON.stringify(failure) }] })
  const { name, code, message, detail: received, stack } = JSON.parse(await host.next('threw')) as ThrownError
  assert.deepEqual({ name, code, message, detail: received }, failure)
  assert.equal(stack, 'CallRefusedError: There is no workflow nobody.\n    at workflows.call() (index.ts:3:18)')
})

const REFUSAL = { name: 'CallRefusedError', code: 'CALL_REFUSED', message: 'There is no workflow nobody.', detail: {} }
const REFUSED = { n: 1, state: 'failed' as const, result: JSON.stringify(REFUSAL) }

test('a refused call that nobody awaits fails the run, though the program has returned', async (t) => {
  const host = await aHost(t, `void workflows.call('nobody')\nreturn 'done'`)
  host.start()
  await opened(host)
  // In the order in which an agent hears of them.
  host.send({ t: 'wake', completions: [REFUSED] })
  host.send({ t: 'kept', count: 1 })
  const { code, message } = JSON.parse(await host.next('threw')) as ThrownError
  assert.deepEqual([code, message], [REFUSAL.code, REFUSAL.message])
})

test('a run with a call that nobody awaits ends when that call is committed', async (t) => {
  const host = await aHost(t, `void workflows.call('other')\nlog('over')\nreturn 'done'`)
  host.start()
  await opened(host)
  await host.next('log')
  assert.equal(
    host.seen.some(({ name }) => name === 'returned'),
    false,
  )
  host.send({ t: 'kept', count: 1 })
  assert.equal(await host.next('returned'), '"done"')
})

test('a refusal that the program handles by itself fails nothing', async (t) => {
  const host = await aHost(t, `workflows.call('nobody').catch(({ code }) => log(code))\nreturn 'done'`)
  host.start()
  await opened(host)
  host.send({ t: 'wake', completions: [REFUSED] })
  host.send({ t: 'kept', count: 1 })
  assert.equal(JSON.parse(await host.next('log')).text, 'CALL_REFUSED')
  assert.equal(await host.next('returned'), '"done"')
})

test('a run that is cancelled does not wait for the calls that nobody awaits', async (t) => {
  const host = await aHost(t, `workflows.call('other').catch(() => {})\nreturn 'done'`)
  host.start()
  await opened(host)
  host.send({ t: 'cancel', why: 'cancelled', reason: '', graceMs: 1000 })
  assert.equal(await host.next('returned'), '"done"')
})

test('a program that waits for nothing at all is still told so', async (t) => {
  const host = await aHost(t, `await sleep(5)\nawait new Promise(() => {})`)
  host.start()
  const thrown = JSON.parse(await host.next('threw')) as { code: string }
  assert.equal(thrown.code, 'RUN_NEVER_SETTLED')
})

test('what cleans up at the end of the loop is not called while a program waits', async (t) => {
  const host = await aHost(t, `process.once('beforeExit', () => process.exit(7))\nawait sleep('1h')\nreturn 'done'`)
  host.start()
  assert.deepEqual(await host.parked(), { waitsFor: 'sleep', heard: 0 })
  host.send({ t: 'wake', completions: [{ n: 1, state: 'done', result: 'null' }] })
  assert.equal(await Promise.race([host.next('returned'), host.exited]), '"done"')
})

test('it is called where nothing is waited for any more', async (t) => {
  const host = await aHost(
    t,
    `process.once('beforeExit', () => process.exit(7))\nawait sleep(5)\nawait new Promise(() => {})`,
  )
  host.start()
  assert.equal(await host.exited, 7)
})

test('a program does not park while something else of it goes on', async (t) => {
  const host = await aHost(
    t,
    `const slept = sleep('1h')
     await new Promise((resolve) => setTimeout(resolve, 50))
     log('worked')
     await slept`,
  )
  host.start()
  await host.next('park')
  assert.deepEqual(
    host.seen.map(({ name }) => name),
    ['begun', 'journal', 'log', 'park'],
  )
})

test('a parked program that is cancelled tidies up', async (t) => {
  const host = await aHost(
    t,
    `try { await sleep('1h') } catch (error) { log(String(error instanceof CancelledError && context.signal.aborted)) }
     return step('tidy', () => 'tidied')`,
  )
  host.start()
  await host.next('park')
  host.send({ t: 'cancel', why: 'cancelled', reason: '', graceMs: 1000 })
  assert.equal(JSON.parse(await host.next('log')).text, 'true')
  assert.equal(await host.next('returned'), '"tidied"')
})

test('a cancel that comes before the first wait counts for it', async (t) => {
  const host = await aHost(
    t,
    `const busy = setInterval(() => {}, 1000)
     await new Promise((resolve) => context.signal.addEventListener('abort', resolve))
     clearInterval(busy)
     return sleep('1h').catch((error) => error.name)`,
  )
  host.start()
  await host.next('begun')
  host.send({ t: 'cancel', why: 'timed-out', reason: '', graceMs: 1000 })
  assert.equal(await host.next('returned'), '"TimedOutError"')
})

test('nothing of a run is left for the next one in the same process', async (t) => {
  const host = await aHost(
    t,
    `if (input.first) { void sleep(900); void sleep('1h'); return 'first' }\nawait sleep(10)\nawait sleep('1h')`,
  )
  host.start({ stays: true, inputText: '{"first":true}' })
  assert.equal(await host.next('returned'), '"first"')
  assert.deepEqual(JSON.parse(await host.next('idle')), { leftovers: [], strays: [] })
  host.start({ stays: true, runId: 'run_second' })
  await host.next('park')
  const second = host.seen
    .slice(host.seen.findLastIndex(({ name }) => name === 'begun'))
    .filter(({ name }) => name === 'journal')
  assert.deepEqual(
    second
      .map(({ text }) => JSON.parse(text) as JournalOp)
      .map((op) => (op.op === 'deliver' ? op.list : `${op.op} ${'entry' in op ? op.entry.n : ''}`)),
    ['close 1', 'open 2', [[1, 1, 1, 1]]],
  )
})

test('a step that leaves a call behind is warned of in the log of the run', async (t) => {
  const host = await aHost(t, `await step('kick', () => void workflows.call('report', {}))\nawait sleep('1h')`)
  host.start()
  const { text, level } = JSON.parse(await host.next('log')) as LogData
  assert.equal(level, 'warn')
  assert.match(text, /^Step "kick" ended while a call that it had begun was under way: workflow "report"\. Should/)
})
