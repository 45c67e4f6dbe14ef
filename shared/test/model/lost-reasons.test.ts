import assert from 'node:assert/strict'
import { test } from 'node:test'
import { LOST_REASONS, whatIsLost } from '../../model/lost-reasons.ts'

test('what an agent says of a loss tells what was lost, and any other words are about the program', () => {
  assert.equal(whatIsLost(LOST_REASONS.fenced), 'network')
  assert.equal(whatIsLost(LOST_REASONS.revoked), 'operator')
  for (const reason of ['', 'its disk is full', 'constructor', '__proto__']) assert.equal(whatIsLost(reason), 'program')
})
