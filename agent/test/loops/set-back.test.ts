// The machine of an agent is set back, or loses what it had written last: the coordinator has more than the agent.
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { after, test } from 'node:test'
import type { TestContext } from 'node:test'
import { LOST_REASONS } from '@windlass/shared/model/lost-reasons.ts'
import { isGone, untilGone } from '@windlass/shared/test/_kit/processes.ts'
import { until, untilPolled } from '@windlass/shared/test/_kit/until.ts'
import { textIn } from '../_kit/text-in.ts'
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

/** Says three lines, and more when there is a file `more` in its workspace. */
const QUIET = `
  const { existsSync } = process.getBuiltinModule('node:fs')
  for (let n = 1; n <= 3; n++) console.log(process.pid + ' ' + n)
  while (!existsSync('more')) await new Promise((resolve) => setTimeout(resolve, 20))
  for (let n = 1; ; n++) {
    console.log('more ' + n)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }`

async function aRun(t: TestContext, program = TICKS, lines = 6) {
  const fake = await FakeCoordinator.start()
  const { folder, remove } = await aFolder()
  t.after(async () => {
    await endAgentProcesses()
    await fake.close()
    await remove()
  })
  const agent = await anAgentProcess(fake.url, folder)
  const placement = fake.offer(await aProgram(program))
  await until('some lines', () => linesOf(placement).length >= lines)
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

/** One entry that the disk of the agent has lost. */
const hasOneMore = ({ entries }: FakePlacement): number => entries.push(entries.at(-1)!)

test('a program says more while its agent has no connection, and that is not mixed with what was lost', async (t) => {
  const { fake, folder, placement, pid } = await aRun(t, QUIET, 3)
  fake.mute.add('hello')
  fake.cut()
  // What is written before the agent notices the cut counts as sent: that it was another entry nobody can know.
  await until('it has asked anew', () => fake.frames.filter(({ t }) => t === 'hello').length === 2)
  const had = hasOneMore(placement)
  writeFileSync(`/proc/${pid}/cwd/more`, '')
  await untilPolled('more is written', () => textIn(path.join(folder, 'spool')).includes('more 3'))
  fake.mute.delete('hello')
  fake.cut()
  assert.deepEqual(await fake.ending(placement), LOST)
  assert.equal(placement.entries.length, had + 1)
})

for (const starts of [1, 2])
  test(`a power cut took one entry and the program: the loss is told after ${starts} starts`, async (t) => {
    const { fake, folder, agent, placement, pid } = await aRun(t, QUIET, 3)
    await agent.kill('SIGKILL')
    process.kill(-pid, 'SIGKILL')
    await untilGone('the program', pid)
    const had = hasOneMore(placement)
    if (starts > 1) {
      // Nobody hears the first of them.
      fake.mute.add('hello')
      await (await anAgentProcess(fake.url, folder)).kill('SIGKILL')
      fake.mute.delete('hello')
    }
    await anAgentProcess(fake.url, folder)
    assert.deepEqual(await fake.ending(placement), LOST)
    assert.equal(placement.entries.length, had + 1)
  })
