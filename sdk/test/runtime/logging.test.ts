import assert from 'node:assert/strict'
import test, { type TestContext } from 'node:test'
import { log, phase } from '../../index.ts'
import { provideRuntime } from '../../runtime/bridge.ts'

/** What is said within a run, parsed. */
function said(t: TestContext, act: () => void): Record<string, unknown>[] {
  const seen: Record<string, unknown>[] = []
  const emit = (_channel: string, text: string) => seen.push(JSON.parse(text) as Record<string, unknown>)
  provideRuntime({ context: null, emit, eventDataBytes: 64 * 1024, waits: () => undefined })
  t.after(() => Reflect.deleteProperty(globalThis, Symbol.for('windlass.runtime')))
  act()
  return seen
}

interface LoggedError {
  name: string
  message: string
  stack: string
  [field: string]: unknown
}

test('an error among the fields of a log line keeps its message, its stack and what it was caused by', (t) => {
  const cause = Object.assign(new TypeError('no such host'), { code: 'ENOTFOUND' })
  const error = new Error('boom', { cause })
  const [line] = said(t, () => log.error('failed', { error, list: [new RangeError('third')] }))
  const { error: logged, list } = line!['fields'] as { error: LoggedError; list: LoggedError[] }
  assert.deepEqual([logged.name, logged.message], ['Error', 'boom'])
  assert.match(logged.stack, /^Error: boom\n +at .*logging\.test\.ts/)
  const { name, message, code } = logged['cause'] as LoggedError
  assert.deepEqual([name, message, code], ['TypeError', 'no such host', 'ENOTFOUND'])
  assert.equal(list[0]?.message, 'third')
})

test('an error in the data of a phase is told like one in a log line', (t) => {
  const [logged] = said(t, () => phase('retrying', { error: new Error('boom') }))
  assert.equal((logged!['data'] as { error: LoggedError }).error.message, 'boom')
})

test('several errors in one are all told, and a circle of causes ends', (t) => {
  const circle: Error = new Error('round')
  circle.cause = circle
  const many = new AggregateError([new Error('one'), new Error('two')], 'both')
  const [line] = said(t, () => log.warn('odd', { circle, many }))
  const { circle: round, many: both } = line!['fields'] as {
    circle: LoggedError
    many: LoggedError & { errors: LoggedError[] }
  }
  assert.deepEqual([round.message, round['cause']], ['round', 'Error: round'])
  assert.deepEqual(
    both.errors.map(({ message }) => message),
    ['one', 'two'],
  )
})

test('an error that says by itself how it is written is written so', (t) => {
  const own = Object.assign(new Error('hidden'), { toJSON: () => ({ status: 404 }) })
  const [line] = said(t, () => log('asked', { own }))
  assert.deepEqual(line!['fields'], { own: { status: 404 } })
})

test('a message that is no text is written as the console has it', (t) => {
  const write = log as (message: unknown) => void
  const odd = { [Symbol.for('nodejs.util.inspect.custom')]: () => assert.fail('from a getter of the program') }
  const lines = said(t, () => {
    for (const value of [42, true, 10n, undefined, null, Symbol('a'), ['a', 'b'], { a: { b: 1 } }, odd]) write(value)
    log.error(new RangeError('boom', { cause: new Error('below') }) as never)
  })
  const texts = lines.map(({ text }) => String(text))
  const error = texts.pop()!
  assert.deepEqual(texts, [
    '42',
    'true',
    '10n',
    'undefined',
    'null',
    'Symbol(a)',
    "[ 'a', 'b' ]",
    '{ a: { b: 1 } }',
    'a message that cannot be read: object',
  ])
  assert.match(error, /^RangeError: boom\n +at .*logging\.test\.ts[^]*\[cause\]: Error: below/)
})

test('what is written of a long value that is no text is all there, in pieces', (t) => {
  const long = 'x'.repeat(25_000)
  const lines = said(t, () => (log as (message: unknown) => void)([long]))
  assert.equal(lines.map(({ text }) => String(text)).join(''), `[\n  '${long}'\n]`)
})
