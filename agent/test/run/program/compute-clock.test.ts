import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createComputeClock } from '../../../run/program/compute-clock.ts'
import { freeMemoryShare } from '../../../os/free-memory.ts'
import { aTime } from '../../_kit/a-time.ts'

test('time in which a program is parked is not counted, and its timeout waits', () => {
  const time = aTime()
  let isOver = false
  const clock = createComputeClock(1000, () => (isOver = true), { time })
  time.pass(60_000)
  assert.deepEqual([clock.counted(), clock.pause(), isOver], [0, 0, false], 'it has not begun')
  clock.go()
  time.pass(600)
  assert.deepEqual([clock.counted(), clock.pause(), clock.leftMs()], [600, 600, 400])
  time.pass(60_000)
  assert.deepEqual([clock.counted(), isOver], [0, false])
  clock.go()
  time.pass(399)
  assert.deepEqual([clock.counted(), isOver], [399, false], 'it has what was left')
  time.pass(1)
  assert.equal(isOver, true)
})

test('a clock that goes on counts from where it was', () => {
  const time = aTime()
  const clock = createComputeClock(1000, () => assert.fail('too late'), { countedMs: 250, time })
  clock.go()
  time.pass(999)
  // The next agent takes the one from the other.
  assert.deepEqual([clock.counted(), clock.leftMs()], [1249, 1250])
  assert.deepEqual([clock.pause(), clock.leftMs()], [1249, 1])
  clock.go()
  assert.deepEqual([clock.counted(), clock.leftMs(), clock.turns()], [0, 1, 2])
})

test('a clock that is disarmed ends nothing, whatever happens', () => {
  const time = aTime()
  const clock = createComputeClock(10, () => assert.fail('too late'), { time })
  clock.go()
  clock.disarm()
  clock.pause()
  clock.go()
  time.pass(30)
  assert.equal(clock.counted(), 30)
})

test('without a word about its time it counts by that of the machine', async () => {
  const over = Promise.withResolvers<void>()
  const clock = createComputeClock(20, over.resolve)
  clock.go()
  await over.promise
  assert.ok(clock.counted() >= 19, `${clock.counted()} ms`)
})

test('the share of free memory is a share', () => {
  const share = freeMemoryShare()
  assert.ok(share > 0 && share <= 1, String(share))
})
