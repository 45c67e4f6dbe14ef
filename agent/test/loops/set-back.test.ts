// The machine of an agent is set back, or loses what it had written last: the coordinator has more than the agent.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import type { TestContext } from 'node:test'
import { LOST_REASONS } from '@windlass/shared/model/lost-reasons.ts'
import { isGone } from '@windlass/shared/test/_kit/processes.ts'
import { until } from '@windlass/shared/test/_kit/until.ts'
import { aFolder, anAgentProcess, endAgentProcesses } from '../_kit/an-agent.ts'
import { aProgram } from '../_kit/bundle.ts'
import { FakeCoordinator, linesOf, type FakePlacement } from '../_kit/fake-coordinator.ts'

const TICKS = `
  for (let n = 1; ; n++) {
    console.log(process.pid + ' ' + n)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }`
const LOST = { how: 'lost', reason: LOST_REASONS.setBack }

after(endAgentProcesses)

async function aRun(t: TestContext) {
  const fake = await FakeCoordinator.start()
  const { folder, remove } = await aFolder()
  t.after(async () => {
    await endAgentProcesses()
    await fake.close()
    await remove()
  })
  const agent = await anAgentProcess(fake.url, folder)
  const placement = fake.offer(await aProgram(TICKS))
  await until('some lines', () => linesOf(placement).length > 5)
  const pid = Number(linesOf(placement)[0]?.split(' ')[0])
  return { fake, folder, agent, placement, pid }
}

/** What a later state of the machine had said. */
function hasMore({ entries }: FakePlacement): number {
  for (let n = 0; n < 6; n++) entries.push(...entries.slice(1))
  return entries.length
}

test('a program that lives is ended, its run is lost at once, and its words are not mixed with those', async (t) => {
  const { fake, placement, pid } = await aRun(t)
  const had = hasMore(placement)
  fake.cut()
  assert.deepEqual(await fake.ending(placement), LOST)
  assert.equal(placement.entries.length, had + 1)
  assert.ok(isGone(pid))
})

test('an agent that was killed with its machine says what was lost', async (t) => {
  const { fake, folder, agent, placement } = await aRun(t)
  await agent.kill('SIGKILL')
  const had = hasMore(placement)
  await anAgentProcess(fake.url, folder)
  assert.deepEqual(await fake.ending(placement), LOST)
  assert.equal(placement.entries.length, had + 1)
})
