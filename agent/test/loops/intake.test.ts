import assert from 'node:assert/strict'
import type { IntakeNotice } from '@windlass/shared/wire/agent.ts'
import { until } from '@windlass/shared/test/_kit/until.ts'
import { aProgram } from '../_kit/bundle.ts'
import { aParked, entryOf, isParked, wake, WAITS } from '../_kit/durable.ts'
import { endingOf, linesOf } from '../_kit/fake-coordinator.ts'
import type { FakeCoordinator } from '../_kit/fake-coordinator.ts'
import { aHandMade } from '../_kit/hand-made.ts'
import { withAgent } from '../_kit/with-agent.ts'

const notice = (state: IntakeNotice['state'], epoch: number) => ({ state, epoch, reason: 'a test', deadlineAt: null })

function say(fake: FakeCoordinator, state: IntakeNotice['state'], epoch: number): void {
  fake.send({ t: 'intake', intake: notice(state, epoch) })
}

/** Computes until it is told that this is enough. */
const WORKS = `say('works'); await message('wake'); done('done')`

/** What would be offered before that could still be given out by the poll that is open. */
async function cordon(fake: FakeCoordinator, epoch = 1): Promise<void> {
  await until('it polls', () => fake.polling() === 1)
  say(fake, 'cordoned', epoch)
  await until('the poll is gone', () => fake.polling() === 0)
}

/** Long enough for several polls, had there been any. */
async function someBeats(fake: FakeCoordinator): Promise<void> {
  const before = fake.heard('heartbeat').length
  await until('some heartbeats', () => fake.heard('heartbeat').length >= before + 3)
}

withAgent(
  'a cordoned agent asks for nothing, keeps what it has, and asks at once when it is open again',
  async ({ fake }) => {
    const parked = await aParked(fake)
    const running = fake.offer(await aHandMade(WORKS))
    await until('it runs', () => linesOf(running).length > 0)
    await cordon(fake)
    const late = fake.offer(await aProgram(`return 2`))
    await someBeats(fake)
    assert.equal(late.state, 'offered')
    assert.ok(isParked(parked), 'its process is kept')
    wake(fake, running, 1)
    assert.deepEqual(await fake.ending(running), { how: 'returned', outputText: '"done"' })
    say(fake, 'open', 2)
    assert.deepEqual(await fake.ending(late), { how: 'returned', outputText: '2' })
    wake(fake, parked, 1)
    await fake.ending(parked)
  },
)

withAgent(
  'the poll that is open when an agent is cordoned is given up at once',
  async ({ fake }) => {
    await cordon(fake)
    assert.equal(fake.cutPolls, 0)
    say(fake, 'open', 2)
    await until('it polls again', () => fake.polling() === 1)
  },
  { settings: { pollMs: 20_000 } },
)

withAgent(
  'a poll that another coordinator holds is cut off in the end',
  async ({ fake }) => {
    fake.isElsewhere = true
    await cordon(fake)
    assert.equal(fake.cutPolls, 1)
  },
  { settings: { pollMs: 20_000 } },
)

withAgent(
  'a poll that waits asks anew when more is free than it asked for',
  async ({ fake }) => {
    await until('it polls', () => fake.polling() === 1)
    const all = fake.asked.at(-1)!
    const placement = fake.offer(await aHandMade(WORKS))
    await until('it polls for the rest', () => fake.polling() === 1 && fake.asked.at(-1) === all - 1)
    wake(fake, placement, 1)
    await fake.ending(placement)
    await until('it asks for all', () => fake.polling() === 1 && fake.asked.at(-1) === all)
    assert.equal(fake.cutPolls, 0)
  },
  { settings: { pollMs: 20_000 } },
)

withAgent(
  'a draining agent gives up what is parked, also what parks later, and lets the rest finish',
  async ({ fake }) => {
    const parked = await aParked(fake)
    const later = fake.offer(await aHandMade(`say('computes'); await message('wake'); ${WAITS}`))
    await until('it computes', () => linesOf(later).includes('computes'))
    say(fake, 'draining', 1)
    assert.deepEqual(await fake.ending(parked), { how: 'evicted', reason: 'draining' })
    assert.equal(endingOf(later), undefined)
    wake(fake, later, 9)
    assert.deepEqual(await fake.ending(later), { how: 'evicted', reason: 'draining' })
    assert.ok(entryOf(later, 'park'))
  },
)

withAgent('an older word changes nothing', async ({ fake }) => {
  await cordon(fake, 5)
  say(fake, 'open', 4)
  const placement = fake.offer(await aProgram(`return 1`))
  await someBeats(fake)
  assert.equal(placement.state, 'offered')
})

withAgent('what a restored database no longer has of a cordon ends with the next connection', async ({ fake }) => {
  await cordon(fake, 5)
  fake.says = { intake: notice('open', 2) }
  fake.cut()
  const placement = fake.offer(await aProgram(`return 1`))
  assert.deepEqual(await fake.ending(placement), { how: 'returned', outputText: '1' })
})

withAgent('a cordon that overtakes the welcome holds', async ({ fake }) => {
  await until('it polls', () => fake.polling() === 1)
  fake.beforeWelcome = [{ t: 'intake', intake: notice('cordoned', 7) }]
  fake.says = { intake: notice('open', 6) }
  fake.cut()
  await until('it says hello again', () => fake.heard('hello').length === 2)
  await until('its poll is gone', () => fake.polling() === 0)
  const placement = fake.offer(await aProgram(`return 1`))
  await someBeats(fake)
  assert.equal(placement.state, 'offered')
})
