import assert from 'node:assert/strict'
import { isGone } from '@windlass/shared/test/_kit/processes.ts'
import { until } from '@windlass/shared/test/_kit/until.ts'
import { aProgram } from '../_kit/bundle.ts'
import { aParked, entryOf, isParked, kindsOf, wake } from '../_kit/durable.ts'
import { endingOf, linesOf } from '../_kit/fake-coordinator.ts'
import { aHandMade } from '../_kit/hand-made.ts'
import { withAgent } from '../_kit/with-agent.ts'

const AT_ONCE = { env: { WINDLASS_AGENT_PARKED_MS: '0' } }
/** Says the number of its process. */
const TELLS = `say(String(process.pid)); await waitFor(1); done()`

withAgent(
  'an agent that keeps nothing gives a process up as soon as its parking is committed, and not before',
  async ({ fake }) => {
    fake.mute.add('ack')
    const placement = await aParked(fake, TELLS)
    const pid = Number(linesOf(placement)[0])
    const beats = fake.heard('heartbeat').length
    await until('two more heartbeats', () => fake.heard('heartbeat').length >= beats + 2)
    assert.equal(isGone(pid), false)
    fake.mute.delete('ack')
    fake.ackAll()
    assert.deepEqual(await fake.ending(placement), { how: 'evicted', reason: 'age' })
    assert.ok(isGone(pid))
    assert.equal(entryOf(placement, 'end')![3], 0)
    await until('it is forgotten', () => fake.heard('heartbeat').at(-1)?.holds.length === 0)
  },
  AT_ONCE,
)

withAgent(
  'a wake that comes before the parking is committed saves the process',
  async ({ fake }) => {
    fake.mute.add('ack')
    const placement = await aParked(fake)
    wake(fake, placement, 1)
    await until('it went on', () => linesOf(placement).includes('woken with 1'))
    fake.mute.delete('ack')
    fake.ackAll()
    assert.equal((await fake.ending(placement)).how, 'returned')
  },
  AT_ONCE,
)

withAgent(
  'a process that has waited long is given up',
  async ({ fake }) => {
    const placement = await aParked(fake)
    assert.deepEqual(await fake.ending(placement), { how: 'evicted', reason: 'age' })
  },
  { env: { WINDLASS_AGENT_PARKED_MS: '100' } },
)

withAgent(
  'of too many parked processes the oldest goes',
  async ({ fake }) => {
    const first = await aParked(fake)
    const second = await aParked(fake)
    const third = await aParked(fake)
    assert.deepEqual(await fake.ending(first), { how: 'evicted', reason: 'too many parked' })
    assert.ok(isParked(second) && isParked(third))
  },
  { env: { WINDLASS_AGENT_PARKED_MOST: '2' } },
)

withAgent(
  'while memory is short, parked processes go',
  async ({ fake }) => {
    const placement = await aParked(fake)
    assert.deepEqual(await fake.ending(placement), { how: 'evicted', reason: 'memory' })
  },
  { env: { WINDLASS_AGENT_MEMORY_RESERVE: '1' } },
)

withAgent('what computes though it said that it only waits is given up', async ({ fake }) => {
  const idle = await aParked(fake)
  const placement = await aParked(
    fake,
    `
    const { spawn } = process.getBuiltinModule('node:child_process')
    const busy = 'for (const end = Date.now() + 600_000; Date.now() < end;);'
    spawn(process.execPath, ['-e', busy], { detached: true, stdio: 'ignore' }).unref()
    await waitFor(1)`,
  )
  assert.deepEqual(await fake.ending(placement), { how: 'evicted', reason: 'computes' })
  assert.ok(isParked(idle))
})

withAgent(
  'whoever waits too long for a slot goes, so that another runner can have the run',
  async ({ fake }) => {
    const placement = await aParked(fake)
    const busy = fake.offer(await aHandMade(`say('busy'); setInterval(() => {}, 1000)`))
    await until('it has the slot', () => linesOf(busy).length > 0)
    wake(fake, placement, 1)
    assert.deepEqual(await fake.ending(placement), { how: 'evicted', reason: 'no slot' })
    assert.equal(endingOf(busy), undefined)
  },
  { env: { WINDLASS_AGENT_SLOTS: '1', WINDLASS_AGENT_WAKE_MS: '200' } },
)

withAgent(
  'a stop gives up at once what only waits, and lets the rest finish',
  async ({ fake, agent }) => {
    const parked = await aParked(fake)
    const slow = fake.offer(
      await aProgram(`console.log('begins'); await new Promise((r) => setTimeout(r, 300)); return 'done'`),
    )
    const later = fake.offer(await aHandMade(`say('begins'); setTimeout(() => { open(1); park() }, 100)`))
    await until('both run', () => linesOf(slow).length > 0 && linesOf(later).length > 0)
    agent.stop()
    assert.equal(await agent.done, 0)
    assert.deepEqual(endingOf(parked), { how: 'evicted', reason: 'shutdown' })
    assert.deepEqual(endingOf(later), { how: 'evicted', reason: 'shutdown' })
    assert.deepEqual(endingOf(slow), { how: 'returned', outputText: '"done"' })
  },
  { env: { WINDLASS_AGENT_STOP_MS: '5000' } },
)

withAgent(
  'a program that ends before its parking is committed has ended',
  async ({ fake }) => {
    fake.mute.add('ack')
    const placement = fake.offer(await aHandMade(`open(1); park(); done('quick')`))
    assert.deepEqual(await fake.ending(placement), { how: 'returned', outputText: '"quick"' })
    assert.deepEqual(kindsOf(placement), ['start', 'j', 'park', 'resume', 'end'])
  },
  AT_ONCE,
)

withAgent(
  'an offer that comes when a wake has just taken its slot waits for the next one, and is left to others when that is late',
  async ({ fake }) => {
    const placement = await aParked(fake, `await waitFor(1); say('goes on'); await message('wake'); deliver(2); done()`)
    wake(fake, placement, 1)
    const soon = fake.offer(await aProgram(`return 1`))
    await until('it has the slot', () => linesOf(placement).includes('goes on'))
    wake(fake, placement, 2)
    assert.equal((await fake.ending(soon)).how, 'returned')

    const busy = await aParked(fake, `await waitFor(1); say('goes on'); setInterval(() => {}, 1000)`)
    wake(fake, busy, 1)
    const late = fake.offer(await aProgram(`return 1`))
    await until('it has the slot', () => linesOf(busy).includes('goes on'))
    const isDeclined = () => fake.heard('decline').some(({ runs }) => runs.some(([run]) => run === late.offer.run))
    await until('it is declined or was never taken', () => isDeclined() || fake.waiting() === 1)
    assert.deepEqual(late.entries, [])
  },
  { env: { WINDLASS_AGENT_SLOTS: '1', WINDLASS_AGENT_WAKE_MS: '300' } },
)
