import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'node:test'
import { until } from '@windlass/shared/test/_kit/until.ts'
import { untilReported } from '../../final-report.ts'
import type { Beats } from '../../lease/beats.ts'
import type { Sleeps } from '../../link/sleeps.ts'
import type { Held } from '../../run/spool/held.ts'
import type { Agent } from '../../start.ts'
import { createUrgency } from '../../stop.ts'
import { aLog, type Logged } from '../_kit/an-agent.ts'
import { aProgram } from '../_kit/bundle.ts'
import { endingOf, type FakeCoordinator, linesOf } from '../_kit/fake-coordinator.ts'
import { withAgent } from '../_kit/with-agent.ts'

/** The names of what an agent logs that has so many characters to tell yet, look by look, two looks a second. */
async function reportOf(unacknowledged: readonly number[], isReady = (_look: number) => true) {
  const { lines, log } = aLog()
  const settings = { current: { heartbeatMs: 50, fenceMs: 86_400_000, cancelGraceMs: 0, pollMs: 0 } }
  const beats = { heldFrom: () => performance.now(), heldMs: () => undefined } as unknown as Beats
  let [looks, now] = [0, 0]
  const spool = {
    held: () => (looks < unacknowledged.length ? [{ run: 'run_1' } as unknown as Held] : []),
    stats: () => ({ placements: 1, unacknowledged: unacknowledged[looks] ?? 0 }),
  }
  const kill = createUrgency()
  await untilReported(
    {
      settings,
      beats,
      sleeps: { since: () => 0 } as unknown as Sleeps,
      link: {
        get isReady() {
          return isReady(looks)
        },
      },
      spool,
      log,
    },
    kill,
    () => (looks++, (now += 500)),
  )
  return [...new Set(lines.map(({ name }) => name))]
}

const falling = (looks: number) => Array.from({ length: looks }, (_, look) => 10_000 - look)
const same = (looks: number, count: number) => Array.from({ length: looks }, () => count)

test('what goes up a slow line is waited for while heartbeats are answered', async () => {
  assert.deepEqual(await reportOf(falling(500)), ['agent.telling'])
  // One entry of 1 MB takes three minutes at 6 KB/s.
  assert.deepEqual(await reportOf(same(400, 1_000_000)), ['agent.telling'])
})

test('a coordinator that takes nothing of it is not waited for much longer than a minute', async () => {
  assert.deepEqual(await reportOf(same(2000, 7)), ['agent.telling', 'agent.untold'])
})

test('a connection that is closed again and again is waited for as long as both', async () => {
  assert.deepEqual(await reportOf(same(20_000, 7), (look) => look % 20 < 10), ['agent.telling', 'agent.untold'])
})

test('one that is away is waited for, five minutes at most', async () => {
  assert.deepEqual(await reportOf(same(400, 7), () => false), ['agent.telling'])
  assert.deepEqual(await reportOf(same(20_000, 7), () => false), ['agent.telling', 'agent.untold'])
})

const said = ({ lines }: Logged, name: string) => until(name, () => lines.find((line) => line.name === name))

/** A run returns while its agent is being stopped and the coordinator is away. */
async function returnsUnheard(fake: FakeCoordinator, agent: Agent & Logged, folder: string) {
  const mark = path.join(folder, 'return')
  const placement = fake.offer(
    await aProgram(`const { existsSync } = await import('node:fs')
      console.log('works')
      while (!existsSync(${JSON.stringify(mark)})) await new Promise((resolve) => setTimeout(resolve, 10))
      return 'paid'`),
  )
  await until('it works', () => linesOf(placement).length > 0)
  agent.stop()
  await said(agent, 'agent.waiting')
  const hellos = fake.heard('hello').length
  fake.mute.add('hello')
  fake.cut()
  await until('it has no connection', () => fake.heard('hello').length > hellos)
  await writeFile(mark, '')
  return placement
}

withAgent(
  'an agent that is stopped while its coordinator is away for a moment tells how its runs ended',
  async ({ fake, agent, folder }) => {
    const placement = await returnsUnheard(fake, agent, folder)
    const { runs } = await said(agent, 'agent.telling')
    assert.deepEqual(runs, [placement.offer.run])
    assert.equal(endingOf(placement), undefined)
    fake.mute.delete('hello')
    fake.cut()
    assert.equal(await agent.done, 0)
    assert.deepEqual(endingOf(placement), { how: 'returned', outputText: '"paid"' })
    assert.equal(
      agent.lines.some(({ name }) => name === 'agent.untold'),
      false,
    )
  },
)

withAgent('a third signal ends it, and it says what it could not tell', async ({ fake, agent, folder }) => {
  const { offer } = await returnsUnheard(fake, agent, folder)
  await said(agent, 'agent.telling')
  agent.stop()
  agent.stop()
  assert.equal(await agent.done, 0)
  assert.deepEqual((await said(agent, 'agent.untold')).runs, [offer.run])
})

withAgent(
  'it does not wait where its leases hold no more',
  async ({ fake, agent, folder }) => {
    await returnsUnheard(fake, agent, folder)
    assert.equal(await agent.done, 0)
    await said(agent, 'agent.untold')
  },
  { settings: { fenceMs: 4000 } },
)
