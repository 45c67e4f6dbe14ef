import assert from 'node:assert/strict'
import { isGone, untilGone } from '@windlass/shared/test/_kit/processes.ts'
import { until } from '@windlass/shared/test/_kit/until.ts'
import { aProgram } from '../_kit/bundle.ts'
import { endingOf, linesOf } from '../_kit/fake-coordinator.ts'
import type { FakePlacement } from '../_kit/fake-coordinator.ts'
import { withAgent } from '../_kit/with-agent.ts'

const DEAF = `console.log(String(process.pid)); given.signal.addEventListener('abort', () => {}); await new Promise(() => setInterval(() => {}, 1000))`

async function pidOf(placement: FakePlacement): Promise<number> {
  return Number(await until('the first line', () => linesOf(placement)[0]))
}

withAgent(
  'an agent that is revoked kills all it runs at once, says so over the same connection, and ends',
  async ({ fake, agent }) => {
    const program = await aProgram(DEAF)
    const placements = [fake.offer(program), fake.offer(program)]
    const pids = await Promise.all(placements.map(pidOf))
    const hellos = fake.heard('hello').length
    fake.send({ t: 'refused', code: 'REVOKED', message: 'revoked by a test' })
    assert.equal(await agent.done, 79)
    for (const pid of pids) assert.ok(isGone(pid))
    for (const each of placements) assert.deepEqual(endingOf(each), { how: 'lost', reason: 'the runner was revoked' })
    assert.equal(fake.heard('hello').length, hellos, 'it does not come again')
    assert.ok(agent.lines.some(({ name, reason }) => name === 'link.refused' && reason === 'revoked by a test'))
  },
  // Its last words may take long on a busy machine; it ends as soon as they are taken.
  { paces: { lastFlushMs: 60_000 } },
)

withAgent('an agent whose last words nobody takes ends all the same', async ({ fake, agent }) => {
  const placement = fake.offer(await aProgram(DEAF))
  const pid = await pidOf(placement)
  fake.mute.add('entries')
  fake.send({ t: 'refused', code: 'REVOKED', message: 'revoked by a test' })
  assert.equal(await agent.done, 79)
  assert.ok(isGone(pid))
})

withAgent(
  'an agent of whose identity there is another one kills what it runs and does not come again',
  async ({ fake, agent }) => {
    const placement = fake.offer(await aProgram(DEAF))
    const pid = await pidOf(placement)
    const hellos = fake.heard('hello').length
    fake.send({ t: 'refused', code: 'REPLACED', message: 'a copy' })
    await untilGone('the program', pid)
    fake.cut()
    assert.equal(await agent.done, 80)
    assert.equal(fake.heard('hello').length, hellos)
  },
)
