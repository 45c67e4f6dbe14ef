import assert from 'node:assert/strict'
import { test } from 'node:test'
import { aHandMade } from '../_kit/hand-made.ts'
import { withAgent } from '../_kit/with-agent.ts'
import { aStage } from '../run/programs.ts'

withAgent('after its replay a program has the time that was left, and no more', async ({ fake }) => {
  const placement = fake.offer(await aHandMade(`frame('live'); setInterval(() => {}, 1000)`), {
    replay: true,
    timeoutMs: 500,
  })
  assert.deepEqual(await fake.ending(placement), { how: 'timed-out', timeoutMs: 500 })
})

test('a replay that does not come to an end is lost', async (t) => {
  const stage = await aStage(t, { replayMs: 300 })
  const { ending, events } = await stage.play('busy-loop.mjs', { replay: true, timeoutMs: 200 })
  assert.deepEqual(ending, {
    how: 'lost',
    reason: 'the replay of what the run had done before did not come to an end in time',
  })
  assert.deepEqual(events, [])
})

test('a replay may take twice the time that is left', async (t) => {
  const stage = await aStage(t, { replayMs: 0 })
  const began = performance.now()
  const { ending } = await stage.play('busy-loop.mjs', { replay: true, timeoutMs: 350 })
  assert.equal(ending.how, 'lost')
  assert.ok(performance.now() - began >= 700)
})
