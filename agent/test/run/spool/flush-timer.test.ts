import assert from 'node:assert/strict'
import { test } from 'node:test'
import { FlushTimer } from '../../../run/spool/flush-timer.ts'

test('what is said while nobody hears it gathers for longer, but for what is urgent', (t) => {
  t.mock.timers.enable({ apis: ['setTimeout', 'setImmediate'] })
  let now = 1000
  t.mock.method(performance, 'now', () => now)
  let unacknowledged = 0
  let flushes = 0
  const timer: FlushTimer = new FlushTimer(
    () => {
      flushes++
      timer.clear()
      timer.flushed()
    },
    () => unacknowledged,
  )
  const pass = (ms: number) => {
    now += ms
    t.mock.timers.tick(ms)
  }
  /** Entries for a second, one each 2 ms. */
  const flushesOf = (isUrgent: boolean) => {
    const before = flushes
    for (let n = 0; n < 500; n++) {
      timer.soon(isUrgent)
      pass(2)
    }
    return flushes - before
  }
  assert.equal(flushesOf(false), 500)
  unacknowledged = 8 * 1024 * 1024
  assert.equal(flushesOf(true), 500)
  const few = flushesOf(false)
  assert.ok(few >= 9 && few <= 11, `${few} flushes`)
  unacknowledged = 0
  pass(100)
  assert.equal(flushesOf(false), 500)
})

test('what is written soon does not wait for what has more time', (t) => {
  t.mock.timers.enable({ apis: ['setTimeout', 'setImmediate'] })
  t.mock.method(performance, 'now', () => 1000)
  const flush = t.mock.fn()
  const timer = new FlushTimer(flush, () => 8 * 1024 * 1024)
  timer.flushed()
  timer.within(1_000)
  timer.soon(false)
  timer.within(1_000)
  t.mock.timers.tick(99)
  assert.equal(flush.mock.callCount(), 0)
  t.mock.timers.tick(1)
  assert.equal(flush.mock.callCount(), 1)
})
