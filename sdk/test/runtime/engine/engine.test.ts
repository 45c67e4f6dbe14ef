import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { EntryIdentity, JournalOp, JournalRecord, SuspendKind } from '@windlass/shared/wire/journal.ts'
import { createEngine } from '../../../runtime/engine/engine.ts'
import type { EngineOptions, Port } from '../../../runtime/engine/port.ts'
import { callsOn } from './calls.ts'

/** An engine whose words are collected, in the real loop. */
function anEngine(options: Partial<EngineOptions> = {}) {
  const ops: JournalOp[] = []
  const parked: SuspendKind[] = []
  const warned: string[] = []
  let isHeld = false
  const port: Port = {
    send: (op) => void ops.push(op),
    together: (say) => say(),
    park: (kind) => void parked.push(kind),
    live: () => {},
    blocked: () => {},
    holdOn: (hold) => {
      isHeld = hold
    },
    isQuiet: () => true,
    site: () => 'index.ts:1:1',
    warn: (text) => void warned.push(text),
    soon: (act) => void setImmediate(act),
    later: (ms, _keeps, act) => {
      const timer = setTimeout(act, ms)
      return () => clearTimeout(timer)
    },
  }
  const engine = createEngine({ attempt: 1, journal: [], entries: 0, forgotten: 0, replay: false, ...options }, port)
  return { engine, ops, parked, warned, isHeld: () => isHeld, ...callsOn({ engine }) }
}

/** A step as a program sees it when its result is kept at once. */
async function stepped(act: () => unknown): Promise<unknown> {
  const { engine, step } = anEngine()
  const result = step('any', act)
  await new Promise(setImmediate)
  engine.confirm(1)
  return await result
}

test('what a step returns keeps its type, and is a copy', async () => {
  const bytes = Buffer.from('small, in a large pool')
  const value = {
    at: new Date(5),
    map: new Map([[1n, new Set(['a'])]]),
    bytes,
    numbers: new Uint16Array([1, 2]),
    none: undefined,
    odd: [Number.NaN, -0],
    error: Object.assign(new RangeError('too far'), { code: 'FAR' }),
    half: '\ud800',
  }
  const result = await stepped(() => Promise.resolve(value))
  const { error, half, ...rest } = result as typeof value
  const { error: _error, half: _half, ...expected } = value
  assert.deepEqual(rest, expected)
  assert.notEqual(rest.map, expected.map)
  assert.ok(Buffer.isBuffer(rest.bytes))
  assert.deepEqual([error.name, error.message, error.code], ['RangeError', 'too far', 'FAR'])
  assert.equal(half, '\ud800')
  assert.equal(await stepped(() => undefined), undefined)
})

test('what cannot be kept is refused with its place', async () => {
  const refused = (act: () => unknown) => assert.rejects(stepped(act), TypeErrorLike)
  const TypeErrorLike = (error: Error) => {
    assert.equal(error.name, 'TypeError')
    messages.push(error.message)
    return true
  }
  const messages: string[] = []
  await refused(() => ({ order: { items: [1, () => 2] } }))
  await refused(() => new EventTarget())
  await refused(() => 'x'.repeat(1024 * 1024))
  assert.match(messages[0] ?? '', /step\('any'\) returned something at `order\.items\[1\]` .*: a function/)
  assert.match(messages[1] ?? '', /: an instance of EventTarget\. Return plain objects/)
  assert.match(messages[2] ?? '', /returned 10485\d\d bytes, 1048576 at most/)
})

test('what a step throws is kept with its name, message, code and stack', async () => {
  const { engine, ops, step } = anEngine()
  const result = step('pay', () => {
    throw Object.assign(new RangeError('too much'), { code: 'LIMIT' })
  })
  await new Promise(setImmediate)
  engine.confirm(1)
  await assert.rejects(result, (error: Error & { code?: string }) => {
    assert.ok(error.stack?.includes('engine.test.ts'))
    assert.deepEqual([error.name, error.message, error.code], ['RangeError', 'too much', 'LIMIT'])
    return true
  })
  const [op] = ops
  assert.ok(op?.op === 'close' && op.state === 'failed')
  await assert.rejects(
    stepped(() => {
      // oxlint-disable-next-line typescript/only-throw-error, no-throw-literal -- programs do.
      throw 'a text'
    }),
    /"a text" was thrown, which is no Error/,
  )
})

test('a process is held until what a step has come to is kept', async () => {
  const { engine, isHeld, step } = anEngine()
  const both = Promise.all([step('a', () => 1), step('b', () => 2)])
  await new Promise(setImmediate)
  assert.equal(isHeld(), true)
  engine.confirm(1)
  assert.equal(isHeld(), true)
  engine.confirm(2)
  assert.equal(isHeld(), false)
  assert.deepEqual(await both, [1, 2])
})

test('short sleeps are told of together, before the parking', async () => {
  const { engine, ops, parked, sleep } = anEngine()
  await Promise.all([sleep(1), sleep(2)])
  assert.deepEqual(ops, [])
  const long = sleep(1000)
  assert.equal(engine.idle(), true)
  assert.deepEqual(
    ops.map(({ op }) => op),
    ['close', 'close', 'deliver', 'open'],
  )
  assert.deepEqual(parked, ['sleep'])
  engine.wake([{ n: 3, state: 'done', result: 'null' }])
  await long
  engine.end('run() returned')
})

test('of several waits a question goes before a child, and a child before a time', () => {
  const { engine, parked, sleep, call, ask } = anEngine()
  void sleep(5000)
  engine.idle()
  void call('child', 1)
  engine.idle()
  void ask('Sure?')
  engine.idle()
  assert.deepEqual(parked, ['sleep', 'child', 'input'])
  engine.end('run() returned')
})

test('nothing is left to wait for: the engine says so', () => {
  assert.equal(anEngine().engine.idle(), false)
})

test('when the run is to end, all waits reject, now and later, and steps go on', async () => {
  const { engine, ops, isHeld, sleep, ask, step } = anEngine()
  const closed = step('closed', () => 'kept or not')
  const running = step('running', async () => await new Promise((resolve) => setImmediate(resolve, 'still')))
  const waits = [sleep(5), sleep(5000), ask('Sure?')]
  await Promise.resolve()
  assert.equal(engine.idle(), true)
  const said = ops.length
  const reason = Object.assign(new Error('cancelled'), { code: 'CANCELLED' })
  engine.stop(reason, 0)
  for (const wait of [...waits, sleep(1), ask('More?')]) await assert.rejects(wait, (error) => error === reason)
  assert.deepEqual(await Promise.all([closed, running, step('tidy', () => 'tidied')]), [
    'kept or not',
    'still',
    'tidied',
  ])
  assert.equal(isHeld(), false)
  assert.equal(ops.length, said)
})

test('a rejected wait that nobody looks at does not end the program in the midst of its tidying up', async (t) => {
  const unhandled = t.mock.fn()
  process.once('unhandledRejection', unhandled)
  t.after(() => process.removeListener('unhandledRejection', unhandled))
  const { engine, sleep } = anEngine()
  void sleep(5000)
  engine.stop(new Error('cancelled'), 0)
  await new Promise(setImmediate)
  assert.equal(unhandled.mock.callCount(), 0)
})

test('a long journal is warned of once, and a full one is refused with advice', async () => {
  const { engine, warned, ask } = anEngine({ journal: [aRecord(4_998)] })
  for (const prompt of ['4999', '5000', '5001']) void ask(prompt)
  assert.equal(warned.length, 1)
  assert.match(warned[0] ?? '', /5000 entries in its journal, and may have 25000/)
  engine.end('run() returned')

  const full = anEngine({ journal: [aRecord(24_999)] })
  void full.ask('the last')
  let isExecuted = false
  const refused = full.step('one more', () => (isExecuted = true))
  await assert.rejects(refused, { code: 'JOURNAL_FULL', message: /workflows\.call\(\)/ })
  assert.equal(isExecuted, false)
  full.engine.end('run() returned')

  const fresh = anEngine({ entries: 24_999, forgotten: 24_999 })
  void fresh.ask('the first')
  void fresh.step('one more', () => (isExecuted = true))
  assert.equal(isExecuted, true)
  fresh.engine.end('run() returned')
})

test('names and arguments are such that PostgreSQL can keep them', () => {
  const { engine, ops, ask } = anEngine()
  void ask(`\0half \ud800${'x'.repeat(300)}`, { text: `${'a'.repeat(470)}🌊🌊🌊🌊🌊🌊🌊` })
  engine.idle()
  const [op] = ops
  assert.ok(op?.op === 'open')
  for (const text of [op.entry.name, op.entry.args]) assert.ok(text.isWellFormed() && !text.includes('\0'))
  assert.ok(op.entry.name.length <= 200 && op.entry.args.length <= 500)
  engine.end('run() returned')
})

test('the path of steps within steps stays short, and tells them apart all the same', async () => {
  const { engine, ops, ask, step } = anEngine()
  const nest = (depth: number, name: string): unknown =>
    depth === 0 ? ask('Sure?') : step(`${'/🌊'.repeat(60)}${name}`, () => nest(depth - 1, 'same'))
  void nest(40, 'one')
  void nest(40, 'other')
  await new Promise(setImmediate)
  engine.idle()
  const parents = ops.flatMap((op) => (op.op === 'open' ? op.entry.parent : []))
  assert.ok(parents.every((parent) => parent.length <= 1000 && parent.isWellFormed()))
  assert.ok(parents.some((parent) => parent.endsWith('same#1')))
  assert.equal(new Set(parents).size, 2 * 40 + 1, 'one each, and the top')
  engine.end('run() returned')
})

test('the order of the fields makes no other call, and equal calls are counted', () => {
  const { engine, ops, call } = anEngine()
  void call('a', { x: 1, y: { b: 1, a: 2 } })
  void call('a', { y: { a: 2, b: 1 }, x: 1 })
  void call('a', { x: 2 })
  engine.idle()
  const [first, second, third] = ops.map((op) => (op.op === 'open' ? op.entry : undefined))
  assert.equal(first?.hash, second?.hash)
  assert.deepEqual([first?.occurrence, second?.occurrence, third?.occurrence], [1, 2, 1])
  assert.notEqual(first?.hash, third?.hash)
  engine.end('run() returned')
})

function aRecord(n: number): JournalRecord {
  const call = { kind: 'sleep', name: '', hash: '', occurrence: 1, args: '' } as const
  const entry: EntryIdentity = { n, position: n, parent: '', ...call, site: '' }
  return {
    ...entry,
    attempt: 0,
    state: 'failed',
    result: '{}',
    drifted: false,
    delivered: null,
    after: 0,
    idle: false,
    completed: null,
  }
}

test('a sleep until a moment is told to the journal, however near this clock says that it is', async () => {
  const { engine, ops } = anEngine()
  const until = Date.now()
  const ask = { for: 'sleep', until } as const
  void engine.wait({ kind: 'sleep', name: '', args: { until }, ask, toError: () => new Error('ended') })
  engine.idle()
  await new Promise(setImmediate)
  assert.deepEqual(
    ops.map((op) => op.op === 'open' && op.ask),
    [ask],
  )
})
