import assert from 'node:assert/strict'
import { test } from 'node:test'
import { LOST_REASONS, lostWhile, whatIsLost } from '../../model/lost-reasons.ts'

test('what an agent says of a loss tells what was lost, and any other words are about the program', () => {
  assert.equal(whatIsLost(LOST_REASONS.fenced), 'network')
  assert.equal(whatIsLost(LOST_REASONS.revoked), 'operator')
  for (const reason of ['', 'its disk is full', 'constructor', '__proto__']) assert.equal(whatIsLost(reason), 'program')
})

test('what a run has waited for until then does not change what was lost', () => {
  const waiting = '1.0 of 9.0 MB of its bundle have come in 60 s; and more'
  assert.equal(lostWhile('fenced', undefined), LOST_REASONS.fenced)
  assert.equal(lostWhile('fenced', waiting), `${LOST_REASONS.fenced}; ${waiting}`)
  assert.equal(whatIsLost(lostWhile('fenced', waiting)), 'network')
  assert.equal(whatIsLost(`its disk is full; ${LOST_REASONS.fenced}`), 'program')
})
