// An agent is killed with kill -9, and the next one says what of its runs had begun.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { existsSync, readdirSync } from 'node:fs'
import path from 'node:path'
import { after, test } from 'node:test'
import { newId } from '@windlass/shared/ids.ts'
import type { Ending } from '@windlass/shared/model/ending.ts'
import { LOST_REASONS, whatIsLost } from '@windlass/shared/model/lost-reasons.ts'
import { until, untilPolled } from '@windlass/shared/test/_kit/until.ts'
import type { Offer } from '@windlass/shared/wire/agent.ts'
import { aFolder, anAgent, anAgentProcess, endAgentProcesses } from '../_kit/an-agent.ts'
import { aBundle, aProgram } from '../_kit/bundle.ts'
import { kindsOf } from '../_kit/durable.ts'
import { FakeCoordinator } from '../_kit/fake-coordinator.ts'
import type { FakePlacement } from '../_kit/fake-coordinator.ts'

after(endAgentProcesses)

const UNBEGUN = { how: 'unready', reason: 'the agent was killed; its program had not begun' }
const LOST = { how: 'lost', reason: LOST_REASONS.killed }

interface Scene {
  fake: FakeCoordinator
  folder: string
  /** By the agent that starts after the one that was killed. */
  ending: (placement: FakePlacement) => Promise<Ending>
}

function killTest(name: string, body: (scene: Scene) => Promise<void>): void {
  test(name, async () => {
    const fake = await FakeCoordinator.start()
    const { folder, remove } = await aFolder()
    const ending = async (placement: FakePlacement) => {
      const next = await anAgent(fake.url, folder)
      const found = await fake.ending(placement)
      const names = next.lines.map(({ name }) => name)
      const isBack = found.how === 'unready'
      assert.deepEqual([names.includes('runs.unbegun'), names.includes('runs.lost')], [isBack, !isBack])
      next.stop()
      await next.done
      return found
    }
    try {
      await body({ fake, folder, ending })
    } finally {
      await endAgentProcesses()
      await fake.close()
      await remove()
    }
  })
}

killTest('a run whose bundle was being unpacked had not begun', async ({ fake, folder, ending }) => {
  const first = await anAgentProcess(fake.url, folder)
  const main = 'export const run = () => 1'
  const program = await aBundle({ 'main.mjs': main, 'much.txt': randomBytes(200_000).toString('hex') })
  fake.onBundle = (response) => {
    response.write(program.packed.subarray(0, program.bytes / 2))
    return true
  }
  const placement = fake.offer(program)
  const bundles = path.join(folder, 'bundles')
  const isUnpacking = () =>
    readdirSync(bundles).some((name) => name.startsWith('draft-') && existsSync(path.join(bundles, name, 'main.mjs')))
  await untilPolled('a part of it is unpacked', isUnpacking)
  await first.kill('SIGKILL')
  assert.deepEqual(await ending(placement), UNBEGUN)
  assert.equal(whatIsLost(UNBEGUN.reason), 'daemon')
  assert.deepEqual(kindsOf(placement), ['end'])
})

killTest('a run that was said twice not to have begun is said so the third time', async ({ fake, folder, ending }) => {
  const placement = fake.offer(await aProgram('return 1'))
  fake.onBundle = () => true
  const first = await anAgentProcess(fake.url, folder)
  await until('it fetches', () => fake.bundleFetches > 0)
  await first.kill('SIGKILL')
  fake.mute.add('hello')
  const second = await anAgentProcess(fake.url, folder)
  await until('it says hello', () => fake.heard('hello').length > 1)
  await second.kill('SIGKILL')
  fake.mute.delete('hello')
  assert.deepEqual(await ending(placement), UNBEGUN)
})

/** Kills it at that moment of the run of that offer, after as many runs in the same process as are asked for. */
async function killedAt(
  { fake, folder }: Scene,
  moment: 'frame.obeyed accepted' | 'program.begins' | 'program.started',
  { before = 0, ...offered }: Partial<Offer> & { before?: number } = {},
): Promise<FakePlacement> {
  const run = newId('run')
  const dies = moment.includes(' ') ? moment : `${moment} ${run}`
  const agent = await anAgentProcess(fake.url, folder, { DIES_AT: dies })
  const program = await aProgram('return 1')
  for (let n = 0; n < before; n++) await fake.ending(fake.offer(program, offered))
  const placement = fake.offer(program, { ...offered, run })
  await until('it is killed', () => agent.child.signalCode !== null, { more: () => agent.output() })
  return placement
}

killTest('a run that was just confirmed had not begun', async (scene) => {
  assert.deepEqual(await scene.ending(await killedAt(scene, 'frame.obeyed accepted')), UNBEGUN)
})

for (const moment of ['program.begins', 'program.started'] as const) {
  killTest(`a run may have begun: ${moment}`, async (scene) => {
    const placement = await killedAt(scene, moment)
    assert.deepEqual(await scene.ending(placement), LOST)
    // What was written down after its process was there has not been told: the mark alone says it.
    assert.deepEqual(kindsOf(placement), ['end'])
  })

  killTest(`a run may have begun in a process of another: ${moment}`, async (scene) => {
    const placement = await killedAt(scene, moment, { process: 'reuse', before: 2 })
    assert.deepEqual(await scene.ending(placement), LOST)
  })
}
