import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { RunnerId } from '@windlass/shared/ids.ts'
import { createDoubts } from '../../agent-link/doubts.ts'

const RUNNER = 'rnr_1' as RunnerId

test('a boot is a clone when the one before is heard again for longer than late words can come', () => {
  let now = 0
  const doubts = createDoubts(() => now)
  assert.equal(doubts.isClone(RUNNER, 'two', 0), false)
  now = 20_000
  assert.equal(doubts.isClone(RUNNER, 'two', 10_000), false, 'heard 10 s after it asked first')
  assert.equal(doubts.isClone(RUNNER, 'two', 4000), true)
  assert.equal(doubts.isClone(RUNNER, 'three', 0), false, 'each boot is asked about for itself')
  assert.equal(doubts.isClone(RUNNER, 'two', Infinity), false)
})

test('a boot that does not come again is forgotten', () => {
  let now = 0
  const doubts = createDoubts(() => now)
  assert.equal(doubts.isClone(RUNNER, 'two', 0), false)
  now = 600_000
  assert.equal(doubts.isClone(RUNNER, 'two', 0), false)
})

test('one that was heard at a time which is still to come is none: the clock of the database was ahead', () => {
  const doubts = createDoubts(() => 0)
  assert.equal(doubts.isClone(RUNNER, 'two', -600_000), false)
})
