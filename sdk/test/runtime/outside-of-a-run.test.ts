import assert from 'node:assert/strict'
import test from 'node:test'
import { CancelledError, TimedOutError, context, log, phase } from '../../index.ts'
import { provideRuntime } from '../../runtime/bridge.ts'
import { jsonText } from '../../runtime/json-text.ts'

function collect() {
  const found: { channel: string; data: Record<string, unknown>; bytes: number }[] = []
  const emit = (channel: string, text: string) =>
    found.push({ channel, data: JSON.parse(text), bytes: Buffer.byteLength(text) })
  provideRuntime({ context: null, emit, eventDataBytes: 64 * 1024, waits: () => undefined })
  return found
}

test('reading the context outside of a run says what to do', () => {
  assert.throws(() => context.runId, /context\.runId was read outside of a run.*second parameter/)
  assert.throws(() => context.signal, /context\.signal/)
})

test('outside of a run phases and logs go to the console', (t) => {
  const printed = t.mock.method(console, 'log', () => {})
  const warned = t.mock.method(console, 'warn', () => {})
  phase('download', { count: 2 })
  log('hello')
  log.warn('careful', { at: 3 })
  assert.deepEqual(
    printed.mock.calls.map((call) => call.arguments),
    [['[phase] download', { count: 2 }], ['hello']],
  )
  assert.deepEqual(
    warned.mock.calls.map((call) => call.arguments),
    [['careful', { at: 3 }]],
  )
})

test('a phase that cannot be kept is refused by name', () => {
  assert.throws(() => phase(''), /name is a text of 1 to 200/)
  assert.throws(() => phase('sum', { total: 1n }), /phase\('sum', data\): data is not JSON/)
})

test('logging never throws and never exceeds an event', () => {
  const found = collect()
  const cycle: Record<string, unknown> = {}
  cycle.self = cycle
  log('cycle', cycle)
  log.error('large', { blob: 'x'.repeat(100_000) })
  log(`${'a'.repeat(9_999)}🌊${'\u0000'.repeat(10_000)}`)
  const [first, second, ...pieces] = found
  assert.deepEqual(first?.data, { text: 'cycle', fields: { omitted: 'the fields are not JSON' } })
  const fields = { omitted: 'the fields are too large', bytes: 100_053, limitBytes: 64 * 1024 }
  assert.deepEqual(second?.data, { text: 'large', level: 'error', fields })
  assert.equal(pieces.map(({ data }) => data.text).join(''), `${'a'.repeat(9_999)}🌊${'\u0000'.repeat(10_000)}`)
  assert.ok(pieces.length === 3 && found.every(({ bytes }) => bytes <= 64 * 1024))
  assert.equal(pieces[1]?.data.text?.toString().startsWith('🌊'), true)
})

test('data of a phase that are too large give way to a note, and a warning names the phase', () => {
  const found = collect()
  const largest = `€${'x'.repeat(64 * 1024 - 5)}`
  phase('most', largest)
  phase('dump', 'x'.repeat(70_000))
  const [most, note, warning] = found.map(({ data }) => data)
  assert.deepEqual(most, { name: 'most', data: largest })
  const data = { truncated: true, bytes: 70_002, limitBytes: 64 * 1024 }
  assert.deepEqual(note, { name: 'dump', data })
  assert.equal(warning?.['level'], 'warn')
  assert.match(warning?.['text'] as string, /^phase\('dump', data\): data has 70002 bytes of JSON and was left out/)
})

test('stop errors are told apart across bundles by their code', () => {
  const foreign = Object.assign(new Error('from another copy'), { code: 'CANCELLED' })
  assert.ok(foreign instanceof CancelledError)
  assert.equal(foreign instanceof TimedOutError, false)
  assert.ok(new TimedOutError('late') instanceof TimedOutError)
  assert.equal(jsonText(undefined) ?? null, null)
})
