import assert from 'node:assert/strict'
import { test } from 'node:test'
import { reasonToGo } from '../../run/parking.ts'

const waiting = { isLeaving: false, completions: new Map(), reason: undefined }
const woken = { ...waiting, completions: new Map([[1, { n: 1, state: 'done' as const, value: null }]]) } as never

test('the first reason to go stays, unless there is no choice', () => {
  assert.equal(reasonToGo(waiting, 'memory'), 'memory')
  assert.equal(reasonToGo({ ...waiting, reason: 'age' }, 'memory'), 'age')
  assert.equal(reasonToGo({ ...waiting, reason: 'age' }, 'draining'), 'draining')
})

test('one that has been woken goes only where there is no choice', () => {
  assert.equal(reasonToGo(woken, 'age'), undefined)
  assert.equal(reasonToGo(woken, 'no slot'), 'no slot')
  assert.equal(reasonToGo(woken, 'shutdown'), 'shutdown')
})

test('one that goes already does not go once more', () => {
  assert.equal(reasonToGo({ ...waiting, isLeaving: true }, 'shutdown'), undefined)
})
