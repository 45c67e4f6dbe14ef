import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createLog } from '@windlass/shared/log.ts'
import { faultFor } from '../../call/failures.ts'
import type { Plan } from '../../call/plan.ts'

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

test('what writes in one transaction says so when that was refused, and what else has written may say nothing', () => {
  for (const code of ['55P03', '57014', '25006']) {
    const { of } = failing()
    const faultOf = (id: string) => faultFor(Object.assign(new Error('no'), { code }), { ...of, plan: planOf(id) })!
    const sure = faultOf('keys.create')
    assert.match(sure.message, /\. Nothing was written; try again\.$/)
    assert.equal(sure.detail?.['mayBeDone'], false)
    // A deploy has kept its files by then, and a webhook is read behind its change.
    for (const id of ['workflows.update', 'webhooks.rotate', 'runs.trigger']) {
      const unsure = faultOf(id)
      assert.doesNotMatch(unsure.message, /Nothing was written/, id)
      assert.equal(unsure.detail?.['mayBeDone'], undefined, id)
    }
  }
})

const planOf = (id: string) => ({ row: { id } }) as Plan
