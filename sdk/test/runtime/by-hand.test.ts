import assert from 'node:assert/strict'
import test from 'node:test'
import { durationMs } from '@windlass/shared/model/duration.ts'
import {
  CallRefusedError,
  InputTimedOutError,
  RunCancelledError,
  RunFailedError,
  requestInput,
  sleep,
  step,
  workflows,
  type FromSchema,
  type JsonSchema,
} from '../../index.ts'
import { provideRuntime } from '../../runtime/bridge.ts'
import { millisecondsOf } from '../../runtime/duration.ts'
import { reviveError } from '../../runtime/wait-errors.ts'

test('outside of a run a sleep sleeps and a step executes its function', async () => {
  const from = performance.now()
  await sleep(20)
  await sleep({ until: Date.now() + 20 })
  await sleep(new Date(0))
  assert.ok(performance.now() - from > 35)
  assert.equal(await step('sum', () => 1 + 1), 2)
  await assert.rejects(
    step('fail', () => {
      throw new RangeError('no')
    }),
    RangeError,
  )
})

test('outside of a run a question and a call say how to put something in their place', (t) => {
  assert.throws(() => requestInput({ prompt: 'Sure?' }), /outside of a run.*In a unit test put an answer in its place/)
  assert.throws(() => workflows.call('other'), /workflows\.call\('other'\).*mock\.method\(workflows, 'call'/)
  t.mock.method(workflows, 'call', () => Promise.resolve({ bytes: 5 }))
  return workflows.call<{ bytes: number }>('other').then(({ bytes }) => assert.equal(bytes, 5))
})

test('between two runs of a process nothing can be waited for', () => {
  const key = Symbol.for('windlass.runtime')
  provideRuntime({ context: null, emit: () => {}, eventDataBytes: 64 * 1024, waits: () => undefined })
  try {
    assert.throws(() => sleep(1), /sleep\(\) was called outside of a run/)
  } finally {
    Reflect.deleteProperty(globalThis, key)
  }
})

test('durations are those of a descriptor', () => {
  for (const text of ['30s', '1.5h', '2d', '250ms', ' 5m ', 0, 1500]) {
    assert.equal(millisecondsOf('x', text), durationMs(text))
  }
  assert.equal(millisecondsOf('x', 0.4), 0)
})

test('what is wrong with a call is said by name', () => {
  const wrong = (act: () => unknown, message: RegExp) => assert.throws(act, { name: 'TypeError', message })
  wrong(() => sleep('soon'), /sleep\(duration\): "soon" is not a duration\. Write '30s'/)
  wrong(() => sleep(-1), /-1 is not a duration/)
  wrong(() => sleep('367d'), /longer than 366 days/)
  wrong(() => sleep(new Date(Number.NaN)), /sleep\(date\): Invalid Date is no moment/)
  wrong(() => sleep({ until: 1e18 }), /sleep\(\{ until \}\): 1000000000000000000 is no moment/)
  wrong(() => sleep({ until: -1e18 }), /is no moment/)
  wrong(() => sleep({ until: Infinity }), /Infinity is no moment/)
  wrong(() => sleep({ until: Date.now() + 400 * 86_400_000 }), /more than 366 days away/)
  wrong(() => step('', () => 1), /name is a text of 1 to 200 characters/)
  wrong(() => step('a', 5 as never), /step\('a', fn\): fn is a function/)
  wrong(() => requestInput({ prompt: '' }), /prompt is a text of 1 to 10000/)
  wrong(() => requestInput({ prompt: 'a', timeout: 'x' }), /requestInput\(\{ timeout \}\): "x" is not a duration/)
  wrong(() => requestInput({ prompt: 'a', onTimeout: 'wait' as never }), /write 'throw' or \{ answer: … \}/)
  wrong(() => requestInput({ prompt: 'a', onTimeout: { answer: 1n } }), /onTimeout\.answer \}\): it is not JSON/)
  wrong(() => workflows.call(''), /slug is the name of a workflow/)
  wrong(() => workflows.call('a', { n: 1n }), /workflows\.call\('a', input\): input is not JSON/)
  const deep = (levels: number) => JSON.parse('['.repeat(levels) + ']'.repeat(levels)) as unknown
  wrong(() => workflows.call('a', deep(501)), /input nests deeper than 500 levels/)
  wrong(() => requestInput({ prompt: 'a', onTimeout: { answer: deep(501) } }), /onTimeout\.answer .* deeper than 500/)
  assert.throws(() => workflows.call('a', deep(500)), /outside of a run/)
  wrong(() => workflows.call('a', 'x'.repeat(2 ** 20)), /input is 1048578 bytes of JSON, 1048576 at most/)
  wrong(() => workflows.call('a', 1, { tags: [''] }), /tags are up to 20 texts/)
  wrong(() => workflows.call('a', 1, { priority: 101 }), /priority is a whole number from -100 to 100/)
  for (const version of [0, 1.5, 2 ** 31, '1' as never]) {
    wrong(() => workflows.call('a', 1, { version }), /version is a whole number from 1 to 2147483647/)
  }
  for (const environment of ['', 'Live', '-a', 'a-', 'a_b', 'a'.repeat(64), 5 as never]) {
    wrong(() => workflows.call('a', 1, { environment }), /environment is a name of lower-case letters/)
  }
  for (const tags of [Array<string>(21).fill('a'), ['a'.repeat(65)], ['\0'], [5 as never]]) {
    wrong(() => workflows.call('a', 1, { tags }), /tags are up to 20 texts/)
  }
  wrong(() => workflows.call('a', 1, { priority: 0.5 }), /priority is a whole number/)
  for (const prompt of ['\0', 'a'.repeat(10_001)]) {
    wrong(() => requestInput({ prompt }), /prompt is a text of 1 to 10000/)
  }
  const schema = { description: 'a'.repeat(16 * 1024) }
  wrong(() => requestInput({ prompt: 'a', schema }), /schema \}\): it has 16402 characters as JSON, 16384 at most/)
})

test('the errors of waits are told apart, also when a step has kept nothing but their code', () => {
  const failed = reviveError({
    name: 'RunFailedError',
    code: 'RUN_FAILED',
    message: 'x',
    detail: { runId: 'run_1', error: { code: 'C', message: 'M' } },
  })
  assert.ok(failed instanceof RunFailedError && failed.runId === 'run_1' && failed.error.code === 'C')
  assert.equal(failed.message, 'The run run_1 failed: M')
  const refused = reviveError({ name: '', code: 'CALL_REFUSED', message: 'no', detail: { code: 'NOT_FOUND' } })
  assert.ok(refused instanceof CallRefusedError && refused.detail.code === 'NOT_FOUND')
  assert.ok(
    reviveError({ name: '', code: 'RUN_CANCELLED', message: '', detail: { runId: 'r' } }) instanceof RunCancelledError,
  )
  assert.ok(Object.assign(new Error('late'), { code: 'INPUT_TIMED_OUT' }) instanceof InputTimedOutError)
  assert.equal(reviveError({ name: 'Odd', message: 'odd' }).name, 'Odd')
})

test('a run that fails because of one that it called names the one that failed by itself', () => {
  const boom = { code: 'PROGRAM_FAILED', message: 'boom' }
  const inner = new RunFailedError('run_c', boom)
  const middle = new RunFailedError('run_b', { code: inner.code, message: inner.message, detail: inner.detail })
  const outer = new RunFailedError('run_a', { code: middle.code, message: middle.message, detail: middle.detail })
  assert.equal(inner.message, 'The run run_c failed: boom')
  assert.equal(middle.message, 'The run run_b failed because run_c, which it called, failed: boom')
  assert.equal(outer.message, 'The run run_a failed because run_c, 2 calls below it, failed: boom')
  assert.equal(outer.error.detail, middle.detail)
  const detail = { truncated: true }
  const cut = new RunFailedError('run_a', { code: 'RUN_FAILED', message: 'The run run_b …', detail })
  assert.equal(cut.message, 'The run run_a failed: The run run_b …')
})

/** Whether each can stand for the other. */
type Same<A, B> = [A, B] extends [B, A] ? true : false

test('an answer has the type that its schema says', () => {
  const ask = () =>
    requestInput({
      prompt: 'a',
      schema: {
        type: 'object',
        properties: {
          approve: { type: 'boolean' },
          sizes: { type: 'array', items: { type: 'integer' } },
          colour: { enum: ['red', 'blue'] },
          kind: { const: 5 },
          note: { type: ['string', 'null'] },
          any: {},
        },
        required: ['approve', 'sizes'],
      },
      onTimeout: { answer: { approve: false, sizes: [] } },
    })
  type Expected = {
    approve: boolean
    sizes: number[]
    colour?: 'red' | 'blue'
    kind?: 5
    note?: string | null
    any?: unknown
  }
  const isSame: Same<Awaited<ReturnType<typeof ask>>, Expected> = true
  const isNamed: Same<Awaited<ReturnType<typeof named>>, { ok: boolean }> = true
  const named = () => requestInput<{ ok: boolean }>({ prompt: 'a', schema: { type: 'object' } })
  const unknowns: [Same<FromSchema<object>, unknown>, Same<FromSchema<{ type: 'object' }>, Record<string, unknown>>] = [
    true,
    true,
  ]
  assert.ok(isSame && isNamed && unknowns.every(Boolean))
})

test('an answer for the end of the time fits the schema, or the program does not compile', () => {
  const prompt = 'May it be shipped?'
  const schema = { type: 'object', properties: { choice: { enum: ['yes', 'no'] } }, required: ['choice'] } as const
  // @ts-expect-error -- this is none of the choices.
  const wrong = () => requestInput({ prompt, schema, onTimeout: { answer: { choice: 'timeout' } } })
  const right = () => requestInput({ prompt, schema, onTimeout: { answer: { choice: 'no' } } })
  const isSame: Same<Awaited<ReturnType<typeof right>>, { choice: 'yes' | 'no' }> = true
  const wide: Record<string, unknown> = schema
  const others = [
    () => requestInput({ prompt, schema: wide, onTimeout: { answer: 5 } }),
    (maybe?: JsonSchema) => requestInput({ prompt, ...(maybe && { schema: maybe }), onTimeout: { answer: 5 } }),
    () => requestInput({ prompt, onTimeout: { answer: 5 } }),
    () => requestInput<{ ok: boolean }>({ prompt, schema: wide, onTimeout: { answer: { ok: true } } }),
  ]
  assert.ok(isSame && others.every((ask) => ask !== wrong))
})

test('a call has the types of the function that it names', () => {
  type Resize = (input: { url: string }, context: unknown) => Promise<{ bytes: number }>
  const call = () => workflows.call<Resize>('resize', { url: 'a' })
  const output: Same<Awaited<ReturnType<typeof call>>, { bytes: number }> = true
  // @ts-expect-error -- the input is another one.
  const wrong = () => workflows.call<Resize>('resize', { address: 'a' })
  // @ts-expect-error -- there is none.
  const none = () => workflows.call<Resize>('resize')
  assert.ok(output && wrong !== none)
})
