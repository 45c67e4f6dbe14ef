import assert from 'node:assert/strict'
import { test } from 'node:test'
import { whenIdle } from '../../workflows/when-idle.ts'

/** Counts what was let go, and can be waited for. */
function counting(idleMs: number) {
  const gone = Promise.withResolvers<void>()
  let times = 0
  const idle = whenIdle(idleMs, () => {
    times++
    gone.resolve()
  })
  return { idle, gone: gone.promise, times: () => times }
}

test('what is idle is let go once', { timeout: 5_000 }, async () => {
  const { idle, gone, times } = counting(10)
  // The timer alone must not hold a process up, so something else has to meanwhile.
  const holding = setInterval(() => undefined, 1_000)
  assert.equal(await idle.busy(async () => 5), 5)
  await gone
  clearInterval(holding)
  await idle.now()
  assert.equal(times(), 1)
})

test('nothing is let go while anything is under way, even when another fails', async () => {
  const { idle, times } = counting(0)
  const work = Promise.withResolvers<void>()
  const first = idle.busy(() => work.promise)
  await assert.rejects(
    idle.busy(() => Promise.reject(new Error('failed'))),
    /failed/,
  )
  await new Promise((resolve) => setTimeout(resolve, 20))
  assert.equal(times(), 0)
  work.resolve()
  await first
})

test('what was never used is not let go', async () => {
  const { idle, times } = counting(0)
  await idle.now()
  assert.equal(times(), 0)
})
