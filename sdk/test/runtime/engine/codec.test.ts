import assert from 'node:assert/strict'
import { test } from 'node:test'
import { errorOf } from '../../../runtime/engine/codec.ts'

test('what is cut of an error says so, as an agent hides a secret only where it sees that it may have been cut', () => {
  const error = Object.assign(new Error('m'.repeat(10_001)), { name: 'n'.repeat(201), code: 'c'.repeat(201) })
  error.stack = 's'.repeat(20_001)
  const { name, message, code, stack } = errorOf(error)
  assert.deepEqual([name, code], [`${'n'.repeat(200)}…`, `${'c'.repeat(200)}…`])
  assert.deepEqual([message, stack], [`${'m'.repeat(10_000)}…`, `${'s'.repeat(20_000)}…`])
  assert.match(errorOf('t'.repeat(501)).message, /^"t{499}… was thrown/)
  assert.equal(errorOf(new Error('m'.repeat(10_000))).message.length, 10_000)
})
