import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createClock } from '../../link/clock.ts'
import { createSleeps } from '../../link/sleeps.ts'
import { aFolder, anAgent } from '../_kit/an-agent.ts'
import { aProgram } from '../_kit/bundle.ts'
import { FakeCoordinator } from '../_kit/fake-coordinator.ts'
import { withAgent } from '../_kit/with-agent.ts'

const MINUTES = 60_000

for (const [aheadMs, how] of [
  [10 * MINUTES, 'behind'],
  [-10 * MINUTES, 'ahead of'],
] as const) {
  test(`an agent whose clock is ten minutes ${how} the coordinator's works from its registration on, and tells times by that one`, async () => {
    const fake = await FakeCoordinator.start()
    fake.runners.aheadMs = aheadMs
    const { folder, remove } = await aFolder()
    const agent = await anAgent(fake.url, folder)
    try {
      const placement = fake.offer(await aProgram(`console.log('now'); return 1`))
      assert.deepEqual(await fake.ending(placement), { how: 'returned', outputText: '1' })
      for (const entry of placement.entries)
        assert.ok(Math.abs(entry[1] - fake.runners.now()) < MINUTES, JSON.stringify(entry))
      assert.ok(agent.lines.some(({ name }) => name === 'clock.corrected'))
      assert.ok(fake.unauthenticated <= 2, `${fake.unauthenticated} tokens were not of now`)
    } finally {
      agent.stop()
      await agent.done
      await fake.close()
      await remove()
    }
  })
}

withAgent('a clock that is set while the agent runs costs it no run', async ({ fake }) => {
  assert.equal((await fake.ending(fake.offer(await aProgram(`return 1`)))).how, 'returned')
  // Seen from the agent it is the same, whichever of both clocks was set.
  fake.runners.aheadMs = 30 * MINUTES
  fake.cut()
  assert.equal((await fake.ending(fake.offer(await aProgram(`return 2`)))).how, 'returned')
})

test('what an answer takes on its way moves no clock, a real difference does, and a senseless date does not', () => {
  let local = 1_000_000_000_000
  const clock = createClock(() => local)
  clock.learn(local - 800)
  assert.equal(clock.offsetMs, 0)
  for (const odd of [new Date(local + 3000).toUTCString(), undefined, null, '', 'yesterday']) clock.learnDate(odd)
  assert.equal(clock.offsetMs, 0)
  clock.learnDate(new Date(local + 600_000).toUTCString())
  assert.ok(Math.abs(clock.offsetMs - 600_000) <= 500)
  clock.learn(local + 640_000)
  assert.equal(clock.now(), local + 640_000)
  local += 5000
  assert.equal(clock.now(), local + 640_000)
  clock.learn(local + 100)
  assert.equal(clock.offsetMs, 0)
})

test('a machine that slept is noticed, one whose clock was set back is not, and sleep counts from where one asks', () => {
  const at = { elapsed: 5000, awake: 1000 }
  const pass = (elapsed: number, awake: number) => {
    at.elapsed += elapsed
    at.awake += awake
    sleeps.look()
  }
  const sleeps = createSleeps(
    () => at.elapsed,
    () => at.awake,
  )
  pass(60_000, 59_980)
  assert.equal(sleeps.since(0), 0)
  pass(30_000, 10)
  const between = at.awake + 1
  assert.equal(sleeps.since(0), 30_010)
  assert.equal(sleeps.since(between), 0)
  pass(-3_600_000, 10)
  pass(20_000, 0)
  assert.equal(sleeps.since(between), 20_000)
})

test('the clocks of this machine agree as long as it is awake', () => {
  const sleeps = createSleeps()
  for (let i = 0; i < 20; i++) sleeps.look()
  assert.equal(sleeps.since(0), 0)
})
