// What an agent could not tell before it was killed is told by the next one, also where that is stopped at once.
import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { after, test, type TestContext } from 'node:test'
import { pause } from '@windlass/shared/time.ts'
import { until, untilPolled } from '@windlass/shared/test/_kit/until.ts'
import { aFolder, anAgent, anAgentProcess, endAgentProcesses } from '../_kit/an-agent.ts'
import { aProgram } from '../_kit/bundle.ts'
import { endingOf, FakeCoordinator, linesOf } from '../_kit/fake-coordinator.ts'
import { textIn } from '../_kit/text-in.ts'

const FENCE_MS = 600_000
const knowsBoots = process.platform === 'linux' ? {} : { skip: 'without /proc no lease is known to hold' }
/** Longer than an agent waits that has no lease. */
const NO_LEASE_MS = 3_500

after(endAgentProcesses)

/**
 * A run returns while its coordinator is away, its agent is killed and started again, so long after the leases were
 * lengthened last, and stopped.
 */
async function stoppedUnheard(t: TestContext, laterMs: number) {
  const fake = await FakeCoordinator.start({ fenceMs: FENCE_MS })
  const { folder, remove } = await aFolder()
  t.after(async () => {
    await endAgentProcesses()
    await fake.close()
    await remove()
  })
  const first = await anAgentProcess(fake.url, folder)
  const mark = path.join(folder, 'return')
  const placement = fake.offer(
    await aProgram(`const { existsSync } = await import('node:fs')
      console.log('works')
      while (!existsSync(${JSON.stringify(mark)})) await new Promise((resolve) => setTimeout(resolve, 10))
      return 'paid'`),
  )
  await until('it works', () => linesOf(placement).length > 0)
  const lives = path.join(folder, 'lives')
  await untilPolled('the lease is written down', () => textIn(lives).includes('fenceMs'))
  const hellos = fake.heard('hello').length
  fake.mute.add('hello')
  fake.cut()
  await until('it has no connection', () => fake.heard('hello').length > hellos)
  writeFileSync(mark, '')
  await untilPolled('it has returned', () => textIn(path.join(folder, 'spool')).includes('paid'))
  await first.kill('SIGKILL')
  const file = path.join(lives, 'lease')
  const lease = JSON.parse(readFileSync(file, 'utf8')) as { fromMs: number }
  writeFileSync(file, JSON.stringify({ ...lease, fromMs: lease.fromMs - laterMs }))
  const agent = await anAgent(fake.url, folder)
  agent.stop()
  const { runs } = await until('agent.telling', () => agent.lines.find(({ name }) => name === 'agent.telling'))
  assert.deepEqual(runs, [placement.offer.run])
  return { fake, placement, agent }
}

test('it waits for the coordinator as long as the leases hold that the agent before it had', knowsBoots, async (t) => {
  // Longer than leases are that nobody has said anything of.
  const { fake, placement, agent } = await stoppedUnheard(t, 60_000)
  await Promise.race([agent.done, pause(NO_LEASE_MS)])
  assert.equal(endingOf(placement), undefined)
  fake.mute.delete('hello')
  fake.cut()
  assert.equal(await agent.done, 0)
  assert.deepEqual(endingOf(placement), { how: 'returned', outputText: '"paid"' })
})

test('it does not where they are over', async (t) => {
  const { agent } = await stoppedUnheard(t, FENCE_MS)
  assert.equal(await agent.done, 0)
  assert.ok(agent.lines.some(({ name }) => name === 'agent.untold'))
})
