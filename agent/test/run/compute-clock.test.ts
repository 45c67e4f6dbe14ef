import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createComputeClock } from '../../run/compute-clock.ts'
import { freeMemoryShare } from '../../run/free-memory.ts'

const ms = (length: number) => new Promise((resolve) => setTimeout(resolve, length))

test('time in which a program is parked is not counted, and its timeout waits', async () => {
  let isOver = false
  const over = Promise.withResolvers<void>()
  const clock = createComputeClock(1000, () => {
    isOver = true
    over.resolve()
  })
  await ms(1100)
  assert.deepEqual([clock.counted(), clock.pause(), isOver], [0, 0, false], 'it has not begun')
  clock.go()
  await ms(500)
  const first = clock.pause()
  assert.ok(first >= 495 && first < 1000, `${first} ms`)
  await ms(700)
  assert.deepEqual([clock.counted(), isOver], [0, false])
  const at = performance.now()
  clock.go()
  await over.promise
  const took = performance.now() - at
  assert.ok(took > 990 - first && took < 1000, `${took} ms after ${first}`)
})

test('a clock that is disarmed ends nothing, whatever happens', async () => {
  const clock = createComputeClock(10, () => assert.fail('too late'))
  clock.go()
  clock.disarm()
  clock.pause()
  clock.go()
  await ms(30)
  assert.ok(clock.counted() > 0)
})

test('the share of free memory is a share', () => {
  const share = freeMemoryShare()
  assert.ok(share > 0 && share <= 1, String(share))
})
