/** Bodies within the limit of bytes, of which each value or name would be worth a look and a sentence. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Fault } from '@windlass/shared/errors.ts'
import { ops } from '@windlass/shared/ops/index.ts'
import { refuseCrowds } from '../../call/crowds.ts'
import { invalidInput } from '../../call/issues.ts'
import { refuseLossyNumbers } from '../../call/json-numbers.ts'

const { input: register } = ops.runnerSurface.register
const { input: trigger } = ops.runs.trigger

function refusalOf(act: () => void): Fault | undefined {
  try {
    act()
    return undefined
  } catch (error) {
    return error as Fault
  }
}

const numbers = (count: number) => Array.from({ length: count }, () => 1)

test('a hundred thousand names that nobody knows are refused by their number', () => {
  const fields = Object.fromEntries(numbers(100_000).map((one, n) => [`k${n}`, one]))
  const refusal = refusalOf(() => refuseCrowds(register, fields))
  assert.match(refusal?.message ?? '', /^100000 fields are given/)
})

test('a field with more values than can be looked at one by one is refused by its name, however deep they lie', () => {
  for (const tags of [numbers(10_000), [[[numbers(10_000)]]], { a: { b: numbers(10_000) } }]) {
    const refusal = refusalOf(() => refuseCrowds(trigger, { workflow: 'w', tags }))
    assert.deepEqual(refusal?.detail, { path: 'tags' })
    assert.match(refusal?.message ?? '', /more than 10000 values/)
  }
  // Any JSON value may be large: it is nobody's list.
  assert.equal(
    refusalOf(() => refuseCrowds(trigger, { workflow: 'w', input: numbers(400_000), tags: ['a'] })),
    undefined,
  )
})

test('of many misfits the first twenty get a sentence, and all are counted', () => {
  const unknown = Object.fromEntries(numbers(900).map((one, n) => [`k${n}`, one]))
  const result = trigger.safeParse({ org: 'o', workflow: 'w', tags: numbers(5000), ...unknown })
  assert.ok(!result.success)
  const { detail, message } = invalidInput(trigger, result.error)
  assert.equal((detail?.['issues'] as unknown[] | undefined)?.length, 20)
  assert.match(message, /\(and 900 more\)$/)
})

test('a number that would be another one is named by its place, among half a million that would not', () => {
  const text = JSON.stringify({ 'a "b"': [{ c: numbers(500_000) }, 'x, y: [', { d: ['1e999', 0] }] })
  assert.equal(
    refusalOf(() => refuseLossyNumbers(text)),
    undefined,
  )
  for (const [sent, why] of [
    ['1e999', 'beyond 1.8e308'],
    ['12345678901234567891', 'it would become 12345678901234567168'],
    ['9'.repeat(1000), 'beyond 1.8e308'],
    ['9'.repeat(6000), 'more than 5000 characters'],
    [`0.${'0'.repeat(6000)}1`, 'more than 5000 characters'],
  ]) {
    const refusal = refusalOf(() => refuseLossyNumbers(text.replace('0]}', `${sent}]}`)))
    assert.deepEqual(refusal?.detail, { path: '["a \\"b\\""][2].d[1]' }, sent)
    assert.ok(refusal?.message.includes(why!))
  }
})

test('a name of a million characters is not answered', () => {
  const refusal = refusalOf(() => refuseLossyNumbers(`{"${'\\u0001'.repeat(1_000_000)}": 12345678901234567891}`))
  assert.ok(refusal!.message.length < 2000, `${refusal!.message.length} characters`)
  assert.match(refusal!.message, /…"\]: is 12345678901234567891/)
})
