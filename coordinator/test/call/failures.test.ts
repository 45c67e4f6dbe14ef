import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createLog } from '@windlass/shared/log.ts'
import { faultFor } from '../../call/failures.ts'

const failing = () => {
  const lines: string[] = []
  const log = createLog({}, 'info', { write: (line) => lines.push(line) })
  return { lines, of: { plan: undefined, requestId: 'req_1', log, strict: true } }
}

// A deploy on a full disk was answered 500, as if we had broken something.
test('a full disk is no fault of ours: 503, with the request id for the operator', () => {
  for (const code of ['ENOSPC', 'EDQUOT', '53100']) {
    const { lines, of } = failing()
    const fault = faultFor(Object.assign(new Error('no room'), { code }), of)!
    assert.deepEqual([fault.status, fault.code, fault.detail], [503, 'UNAVAILABLE', { requestId: 'req_1' }])
    assert.match(fault.message, /disk .* is full/)
    assert.match(lines.join(''), /http\.disk\.full.*no room/s)
  }
})

test('what nobody foresaw is 500, and its message stays in the log', () => {
  const { lines, of } = failing()
  const fault = faultFor(Object.assign(new Error('secret'), { code: 'EIO' }), of)!
  assert.deepEqual([fault.status, fault.code], [500, 'INTERNAL'])
  assert.doesNotMatch(fault.message, /secret/)
  assert.match(lines.join(''), /secret/)
})

test('a lock that others held for too long is 503: the same may be sent again', () => {
  const { of } = failing()
  const fault = faultFor(Object.assign(new Error('canceling statement due to lock timeout'), { code: '55P03' }), of)!
  assert.deepEqual([fault.status, fault.code], [503, 'UNAVAILABLE'])
})
