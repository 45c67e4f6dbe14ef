import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { newId } from '@windlass/shared/ids.ts'
import { ops } from '@windlass/shared/ops/index.ts'
import { onMoment } from '@windlass/shared/probe.ts'
import type { Placement } from '@windlass/shared/wire/agent.ts'
import { anAgent, type Link, type TestAgent } from '../_kit/agent.ts'
import { aCoordinator, aRun, type TestCoordinator } from '../_kit/coordinator.ts'
import { aWorkflow } from '../_kit/workflow.ts'

// Three agents with 4,000 runs each that asked for new tokens again and again kept everybody waiting for a second.

const RUNS = 120

let c: TestCoordinator
let agent: TestAgent
let link: Link
const holds: Placement[] = []

before(async () => {
  c = await aCoordinator()
  await aWorkflow(c, { slug: 'any' })
  agent = await anAgent(c, { slots: RUNS })
  link = await agent.connect()
  await Promise.all(Array.from({ length: RUNS }, () => aRun(c, { workflow: 'any' })))
  while (holds.length < RUNS) {
    const { runs } = await link.accept(...(await agent.poll(RUNS - holds.length)))
    holds.push(...runs)
  }
})
after(async () => {
  agent.close()
  await c.stop()
})

async function tokens(count: number): Promise<Map<string, string>> {
  const found = new Map<string, string>()
  while (found.size < count) for (const { run, token } of (await link.next('tokens')).runs) found.set(run, token)
  return found
}

test('many tokens are minted in pieces, between which others have their turns', async () => {
  let pieces = 0
  const stop = onMoment(({ name, facts }) => {
    if (name === 'pace.passed' && 'org' in facts && facts.org === c.orgId) pieces++
  })
  // Too short to be read in a turn of its own.
  link.send({ t: 'renew', runs: holds })
  const found = await tokens(RUNS)
  stop()
  assert.deepEqual([...found.keys()].toSorted(), holds.map(([run]) => run).toSorted())
  assert.ok(pieces >= 3, `${pieces} pieces`)
  const [run, token] = [...found][0]!
  assert.equal((await c.call(ops.runnerSurface.self, { run }, { apiKey: token })).run.status, 'pending')
})

test('only what was asked for gets a token, once however often it is named', async () => {
  const invented = Array.from({ length: 100 }, (_, n) => [newId('run'), n] as const)
  const [one] = holds
  link.send({ t: 'renew', runs: [...invented, one!, one!, one!] })
  assert.deepEqual(
    (await link.next('tokens')).runs.map(({ run, epoch }) => [run, epoch]),
    [one],
  )
  link.send({ t: 'renew', runs: invented.slice(0, 1) })
  assert.deepEqual((await link.next('tokens')).runs, [])
})

test('an org renews the tokens of one agent at a time', async () => {
  const leave = await c.deps.sockets.renewals.take(c.orgId)
  link.send({ t: 'renew', runs: holds.slice(0, 1) })
  // Nothing else of the connection waits for that.
  await link.accept()
  assert.deepEqual(
    link.unread().filter(({ t }) => t === 'tokens'),
    [],
  )
  leave()
  assert.equal((await tokens(1)).size, 1)
})
