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

test("time in which its agent stands still is nobody's, but for a second of which nothing is known", () => {
  const time = aTime()
  let isOver = false
  const clock = createComputeClock(30_000, () => (isOver = true), { time })
  clock.go()
  time.pass(8000)
  time.stall(37_000)
  assert.deepEqual([clock.counted(), isOver], [9000, false])
  assert.equal(clock.turns(), 2, 'what was noted of it for the next agent is not true any more')
  time.pass(20_999)
  assert.equal(isOver, false)
  time.pass(1)
  assert.equal(isOver, true)
})

test('a stall is known before anybody has looked, and one that ends with a pause is taken off too', () => {
  const time = aTime()
  const clock = createComputeClock(30_000, () => assert.fail('too late'), { time: { ...time, later: () => () => {} } })
  clock.go()
  time.pass(21_000)
  assert.deepEqual([clock.counted(), clock.pause(), clock.leftMs()], [1000, 1000, 29_000])
  clock.go()
  time.pass(11_000)
  clock.disarm()
  time.pass(11_000)
  assert.equal(clock.counted(), 12_000, 'nobody looks any more: all of that counts')
})

test('an agent that is late by less than half a second is busy: the timeout counts on', () => {
  const time = aTime()
  let isOver = false
  const clock = createComputeClock(10_000, () => (isOver = true), { time })
  clock.go()
  for (let lookMs = 0; lookMs < 9900; lookMs += 990) time.stall(990)
  assert.deepEqual([clock.counted(), isOver], [9900, false])
  time.pass(100)
  assert.equal(isOver, true)
})

for (const [timeoutMs, stallsMs] of [
  [10_000, 120_000],
  [600_000, 600_000],
] as const) {
  test(`of ${timeoutMs} ms, stalls of ${stallsMs} ms are taken off in all`, () => {
    const time = aTime()
    const overAt: number[] = []
    const clock = createComputeClock(timeoutMs, () => overAt.push(time.now()), { time })
    clock.go()
    for (let stalls = 0; stalls < 100; stalls++) time.stall(21_000)
    const leastMs = timeoutMs + stallsMs
    const [tookMs = Infinity] = overAt
    assert.ok(tookMs >= leastMs && tookMs <= leastMs + 2 * 21_000, `${tookMs} ms`)
  })
}

test('a timeout that comes late lets what was said before it come first', () => {
  const time = aTime()
  let isOver = false
  const clock = createComputeClock(1000, () => (isOver = true), { time })
  clock.go()
  time.pass(500)
  time.stall(700)
  assert.equal(isOver, false)
  clock.pause()
  time.pass(10_000)
  assert.equal(isOver, false, 'it had said that it waits')
  clock.go()
  time.pass(0)
  time.pass(1)
  assert.equal(isOver, true)
})

test('a timeout that comes late comes', () => {
  const time = aTime()
  let isOver = false
  const clock = createComputeClock(1000, () => (isOver = true), { time })
  clock.go()
  time.pass(500)
  time.stall(700)
  time.pass(249)
  assert.equal(isOver, false)
  time.pass(1)
  assert.equal(isOver, true)
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
