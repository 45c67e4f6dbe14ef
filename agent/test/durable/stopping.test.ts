import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isGone, untilGone } from '@windlass/shared/test/_kit/processes.ts'
import { until } from '@windlass/shared/test/_kit/until.ts'
import { aFolder, anAgentProcess, endAgentProcesses } from '../_kit/an-agent.ts'
import { aParked, entryOf, kindsOf, wake } from '../_kit/durable.ts'
import { endingOf, FakeCoordinator, linesOf } from '../_kit/fake-coordinator.ts'
import type { FakePlacement } from '../_kit/fake-coordinator.ts'
import { aHandMade } from '../_kit/hand-made.ts'
import { withAgent } from '../_kit/with-agent.ts'

const CLEANS_UP = `
  say(String(process.pid)); open(1); park()
  const { why } = await message('cancel')
  say('cleans up: ' + why); done()`
const DEAF = `process.on('SIGTERM', () => {}); say(String(process.pid)); open(1); park()`

const orderFor = (placement: FakePlacement, graceMs: number, why: 'cancelled' | 'timed-out' = 'cancelled') => ({
  t: 'cancel' as const,
  runs: [{ run: placement.offer.run, epoch: placement.offer.epoch, why, reason: 'typo', graceMs }],
})

withAgent(
  'a parked program that is cancelled cleans up without a slot',
  async ({ fake }) => {
    const placement = await aParked(fake, CLEANS_UP)
    const busy = fake.offer(await aHandMade(`say('busy'); setInterval(() => {}, 1000)`))
    await until('the slot is taken', () => linesOf(busy).length > 0)
    fake.send(orderFor(placement, 5000))
    assert.deepEqual(await fake.ending(placement), { how: 'cancelled', forced: false })
    assert.equal(linesOf(placement).at(-1), 'cleans up: cancelled')
    assert.deepEqual(kindsOf(placement), ['start', 'log.stdout', 'j', 'park', 'log.stdout', 'end'])
    assert.equal(endingOf(busy), undefined)
  },
  { env: { WINDLASS_AGENT_SLOTS: '1' } },
)

withAgent('one whose time from its creation on is used up has timed out', async ({ fake }) => {
  const placement = await aParked(fake, CLEANS_UP, { timeoutMs: 9000 })
  fake.send(orderFor(placement, 5000, 'timed-out'))
  assert.deepEqual(await fake.ending(placement), { how: 'timed-out', timeoutMs: 9000 })
  assert.equal(linesOf(placement).at(-1), 'cleans up: timed-out')
})

withAgent(
  'a parked program that does not listen is killed after the grace, and not given up before',
  async ({ fake }) => {
    const placement = await aParked(fake, DEAF)
    fake.send(orderFor(placement, 300))
    wake(fake, placement, 1)
    assert.deepEqual(await fake.ending(placement), { how: 'cancelled', forced: true })
    assert.ok(isGone(Number(linesOf(placement)[0])))
    assert.equal(entryOf(placement, 'resume'), undefined)
  },
)

withAgent(
  'a parked program without a lease is killed',
  async ({ fake }) => {
    const placement = await aParked(fake, DEAF)
    fake.mute.add('heartbeat')
    assert.equal((await fake.ending(placement)).how, 'lost')
    assert.ok(isGone(Number(linesOf(placement)[0])))
  },
  { settings: { fenceMs: 500 } },
)

withAgent('a parked program that is stale is killed without a report', async ({ fake }) => {
  const placement = await aParked(fake, DEAF)
  const count = placement.entries.length
  placement.state = 'stale'
  await untilGone('it', Number(linesOf(placement)[0]))
  assert.equal(placement.entries.length, count)
})

test('what was parked when the agent was killed is reported as lost by the next one', async () => {
  const fake = await FakeCoordinator.start()
  const { folder, remove } = await aFolder()
  try {
    const first = await anAgentProcess(fake.url, folder)
    const placement = await aParked(fake, `frame('out', 'half a line'); ${DEAF}`)
    await first.kill('SIGKILL')
    await anAgentProcess(fake.url, folder)
    assert.deepEqual(await fake.ending(placement), { how: 'lost', reason: 'the agent was killed' })
    assert.deepEqual(kindsOf(placement).slice(-3), ['j', 'park', 'end'])
  } finally {
    await endAgentProcesses()
    await fake.close()
    await remove()
  }
})
