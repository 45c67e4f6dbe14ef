// An agent is cut off from its coordinator, which gives its runs to another; what it says later changes nothing.
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { after, test } from 'node:test'
import type { TestAgent } from '../_kit/agents.ts'
import * as ast from '../_kit/ast.ts'
import { begin, durableInstance, isNow, questionsOf } from '../_kit/durable.ts'
import { type Partition, partition } from '../_kit/partition.ts'
import { ended, get, hasSaid, textsOf, typesOf, wholeLog } from '../_kit/runs.ts'
import { notesOf } from '../_kit/story.ts'
import { until } from '../_kit/until.ts'

const durable = durableInstance({
  onceUp: async () => void (cut = await partition(durable.current().access.url)),
})
const { folder, client } = durable
let cut: Partition

after(() => cut?.close())

function stepsOf(key: string): string[] {
  return notesOf(folder(), key).flatMap(({ what, path }) => (what === 'step' ? [path] : []))
}

function pidOf(key: string): number {
  return notesOf(folder(), key).at(-1)!.pid
}

function isDead(pid: number): Promise<boolean> {
  const look = () => {
    try {
      process.kill(pid, 0)
      return false
    } catch {
      // No such process.
      return true
    }
  }
  return until(`the end of ${pid}`, look)
}

async function splitPool(slug: string): Promise<{ reached: () => Promise<TestAgent> }> {
  await durable.join({ name: `${slug}-cut`, pool: slug, url: cut.url })
  await durable.interpreter({ slug, pool: slug })
  return { reached: () => durable.join({ name: `${slug}-reached`, pool: slug }) }
}

test('an agent that is cut off while its run waits: another continues it, and what the first says later changes nothing', async () => {
  const split = await splitPool('split-parked')
  const program = ast.seq(ast.step('once'), ast.log('asked'), ast.ask('split'), ast.log('answered'), ast.step('after'))
  const id = await begin(durable, 'split-parked', program, 'split-parked')
  await isNow(client(), id, 'awaiting_input')
  const [input] = await questionsOf(client(), id)
  const pid = pidOf('split-parked')
  cut.cut()
  await split.reached()
  await client().inputs.respond({ input: input!.id, answer: 1 })
  const run = await ended(client(), id)
  assert.equal(run.runner?.name, 'split-parked-reached')
  assert.equal(run.attempt, 1)
  const before = await wholeLog(client(), id)
  cut.heal()
  await isDead(pid)
  await isFineAgain('split-parked-cut')
  assert.deepEqual(await wholeLog(client(), id), before)
  assert.deepEqual(textsOf(before), ['asked', 'answered'])
  assert.deepEqual(stepsOf('split-parked'), ['/0', '/4'])
})

test('an agent that is cut off while it computes: the run starts again elsewhere, and its own words are stale', async () => {
  const split = await splitPool('split-hot')
  const gate = `${folder()}/split-gate`
  const program = ast.seq(ast.step('once'), ast.log('begun'), ast.attempt, ast.gate(gate), ast.log('done'))
  const id = await begin(durable, 'split-hot', program, 'split-hot')
  await hasSaid(client(), id, 'log.stdout', 'begun')
  const pid = pidOf('split-hot')
  cut.cut()
  await split.reached()
  await until('attempt 2', async () => (await get(client(), id)).attempt === 2)
  await isDead(pid)
  writeFileSync(gate, '')
  const run = await ended(client(), id)
  assert.equal(run.runner?.name, 'split-hot-reached')
  const before = await wholeLog(client(), id)
  cut.heal()
  await isFineAgain('split-hot-cut')
  assert.deepEqual(await wholeLog(client(), id), before)
  assert.deepEqual(textsOf(before), ['begun', 'begun', 'done'])
  assert.equal(typesOf(before).filter((type) => type === 'run.restarted').length, 1)
  assert.deepEqual(stepsOf('split-hot'), ['/0'])
})

/** It hears again, and is heard. */
async function isFineAgain(name: string): Promise<void> {
  const look = async () => (await client().runners.list({})).runners.find((runner) => runner.name === name)
  await until(`${name} to be online`, async () => (await look())?.status === 'online')
}
