import assert from 'node:assert/strict'
import { until } from '@windlass/shared/test/_kit/until.ts'
import { aParked, entryOf, kindsOf, wake } from '../_kit/durable.ts'
import { linesOf } from '../_kit/fake-coordinator.ts'
import type { FakeCoordinator, FakePlacement } from '../_kit/fake-coordinator.ts'
import { aHandMade } from '../_kit/hand-made.ts'
import { withAgent } from '../_kit/with-agent.ts'

const AT_ONCE = { env: { WINDLASS_AGENT_PARKED_MS: '0' } }

/** Prints the same before its wait each time, a part of a line and half a character among it. */
const PRINTS = `
  say('before')
  frame('phase', JSON.stringify({ name: 'first' }))
  frame('out', 'par')
  const grin = Buffer.from('😀')
  frame('err', grin.subarray(0, 2))
  if (!input.replay) { await waitFor(1) } else { frame('live'); deliver(1) }
  frame('err', grin.subarray(2))
  frame('err', '\\n')
  frame('out', 'tial\\n')
  say('after')
  done()`

/** The run continues in a new process. */
function again(fake: FakeCoordinator, placement: FakePlacement): FakePlacement {
  const { run, bundle } = placement.offer
  const packed = fake.bundles.get(bundle.digest)!
  return fake.offer(packed, { run, epoch: 2, replay: true, inputText: '{"replay":true}' })
}

withAgent(
  'an evicted run that is replayed has the log text of one that was not',
  async ({ fake }) => {
    const first = await aParked(fake, PRINTS, { inputText: '{}' })
    assert.equal((await fake.ending(first)).how, 'evicted')
    const second = again(fake, first)
    assert.equal((await fake.ending(second)).how, 'returned')
    assert.deepEqual(kindsOf(first), ['start', 'log.stdout', 'phase', 'j', 'park', 'end'])
    assert.deepEqual(kindsOf(second), ['start', 'resume', 'j', 'log.stderr', 'log.stdout', 'log.stdout', 'end'])
    assert.deepEqual([...linesOf(first), ...linesOf(second)], ['before', '😀', 'partial', 'after'])
  },
  AT_ONCE,
)

withAgent('a replay with nothing new to get parks without having gone on', async ({ fake }) => {
  const body = `say('before'); park(); await message('wake'); frame('live'); deliver(1); say('after'); done()`
  const placement = await aParked(fake, body, { replay: true })
  assert.deepEqual(kindsOf(placement), ['start', 'park'])
  assert.equal(entryOf(placement, 'park')![3], 0, 'a replay computes nothing new')
  wake(fake, placement, 1)
  await fake.ending(placement)
  assert.deepEqual(kindsOf(placement), ['start', 'park', 'resume', 'j', 'log.stdout', 'end'])
  assert.deepEqual(linesOf(placement), ['after'])
})

withAgent('a wake during a replay reaches the program at once', async ({ fake }) => {
  const placement = fake.offer(
    await aHandMade(`close(1); const { completions } = await message('wake'); frame('live')
      deliver(...completions.map((each) => each.n)); say('has it'); done()`),
    { replay: true },
  )
  await until('it replays', () => kindsOf(placement).includes('j'))
  wake(fake, placement, 2)
  await fake.ending(placement)
  assert.deepEqual(linesOf(placement), ['has it'])
})

withAgent('what native children of a replay print is not told again', async ({ fake }) => {
  const placement = fake.offer(
    await aHandMade(`
      const { spawnSync } = await import('node:child_process')
      const echo = (text) => spawnSync('sh', ['-c', 'echo ' + text], { stdio: ['ignore', 1, 2] })
      echo('old'); frame('live'); close(1); await kept(1); echo('new'); done()`),
    { replay: true },
  )
  await fake.ending(placement)
  assert.deepEqual(linesOf(placement), ['new'])
})

withAgent('a replay that meets something else is blocked, and names it in short texts', async ({ fake }) => {
  const placement = fake.offer(
    await aHandMade(`frame('out', 'half'); frame('blocked', JSON.stringify(
      { expected: 'sleep(1)', received: 'x'.repeat(50000), at: 7, more: 1 })); setInterval(() => {}, 1000)`),
    { replay: true },
  )
  const ending = await fake.ending(placement)
  assert.ok(ending.how === 'blocked')
  assert.deepEqual(ending.mismatch, { expected: 'sleep(1)', received: 'x'.repeat(2000), at: '' })
  assert.deepEqual(linesOf(placement), [])
})
