import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createUrgencies } from '../../start/signals.ts'

test('a signal that comes twice within a moment is one', () => {
  const urgencyOf = createUrgencies()
  assert.equal(urgencyOf('SIGINT', 1000), 'stop')
  assert.equal(urgencyOf('SIGINT', 1001), undefined)
  assert.equal(urgencyOf('SIGINT', 1400), undefined)
  assert.equal(urgencyOf('SIGINT', 2000), 'hurry')
})

test('another signal is another one at once, and from the third on nothing is waited for', () => {
  const urgencyOf = createUrgencies()
  assert.equal(urgencyOf('SIGINT', 0), 'stop')
  assert.equal(urgencyOf('SIGTERM', 1), 'hurry')
  assert.equal(urgencyOf('SIGINT', 2), 'leave')
  assert.equal(urgencyOf('SIGINT', 5000), 'leave')
})
