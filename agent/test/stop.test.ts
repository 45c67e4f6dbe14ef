import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createUrgency, fired } from '../stop.ts'

test('each call goes one step further', () => {
  const urgency = createUrgency()
  const steps = () => [urgency.leave, urgency.ask, urgency.kill].filter(({ aborted }) => aborted).length
  for (const expected of [1, 2, 3, 3]) {
    urgency.raise()
    assert.equal(steps(), expected)
  }
})

test('whoever has lost its supervisor begins to stop at once, and is at its end in time', async () => {
  const urgency = createUrgency()
  urgency.raise({ withinMs: 20 })
  assert.deepEqual([urgency.leave.aborted, urgency.ask.aborted, urgency.mostMs()], [true, false, 20])
  const watch = setTimeout(() => {}, 10_000)
  await fired(urgency.kill)
  clearTimeout(watch)
})
