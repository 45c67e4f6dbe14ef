import assert from 'node:assert/strict'
import { test } from 'node:test'
import { decodeResult, encodeResult, errorOf, reviveError } from '../../../runtime/engine/codec.ts'

test('what is cut of an error says so, as an agent hides a secret only where it sees that it may have been cut', () => {
  const error = Object.assign(new Error('m'.repeat(10_001)), { name: 'n'.repeat(201), code: 'c'.repeat(201) })
  error.stack = 's'.repeat(20_001)
  const { name, message, code, stack } = errorOf(error)
  assert.deepEqual([name, code], [`${'n'.repeat(200)}…`, `${'c'.repeat(200)}…`])
  assert.deepEqual([message, stack], [`${'m'.repeat(10_000)}…`, `${'s'.repeat(20_000)}…`])
  assert.match(errorOf('t'.repeat(501)).message, /^"t{499}… was thrown/)
  assert.equal(errorOf(new Error('m'.repeat(10_000))).message.length, 10_000)
})

test('the code of an error is kept, also one that is a number', () => {
  const coded = (code: unknown) => Object.assign(new Error('not found'), { code })
  const again = (error: Error) => reviveError(JSON.parse(JSON.stringify(errorOf(error))) as ReturnType<typeof errorOf>)
  const codeOf = (error: unknown) => (error as { code?: unknown }).code
  for (const code of ['ENOENT', 404, 0, -2]) {
    assert.equal(codeOf(again(coded(code))), code)
    assert.equal(codeOf(decodeResult(encodeResult('look', coded(code)))), code)
  }
  assert.equal(codeOf(again(new DOMException('gone', 'AbortError'))), 20)
  for (const code of [NaN, Infinity, 10n, { a: 1 }, null]) assert.ok(!('code' in again(coded(code))))
})
