import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { ops } from '@windlass/shared/ops/index.ts'
import { beginEpoch } from '../../db/cluster.ts'
import { aHello, anAgent, anInstance, placementOf, takeNext, type TestAgent } from '../_kit/agent.ts'
import { aCoordinatorOfItsOwn, aRun, runOf, type TestCoordinator } from '../_kit/coordinator.ts'
import { untilNoted } from '../_kit/noted.ts'
import { aWorkflow } from '../_kit/workflow.ts'

let c: TestCoordinator
let agent: TestAgent

before(async () => {
  c = await aCoordinatorOfItsOwn()
  await aWorkflow(c, { slug: 'any' })
  agent = await anAgent(c)
})
after(async () => {
  agent.close()
  await c.stop()
})

test('what an agent holds from before a restore is ended, and begins again as an act of the operator', async () => {
  const instance = anInstance({ cluster: c.deps.cluster })
  const first = await agent.connect([], { instance })
  await aRun(c, { workflow: 'any' })
  const offer = await takeNext(agent, first)
  first.close()
  await untilNoted(c, agent)
  await c.db.begin((tx) => beginEpoch(tx))
  const later = await c.another()

  const link = await agent.at(later).dial()
  link.send(aHello({ instance, holds: [placementOf(offer)] }))
  const welcome = await link.next('welcome')
  assert.deepEqual(welcome.stale, [placementOf(offer)])
  assert.deepEqual(welcome.resume, [])
  assert.equal(welcome.cluster, later.deps.cluster)
  const run = await runOf(c, offer.run)
  assert.deepEqual([run.status, run.attempt], ['queued', 2])
  assert.equal(run.lost?.what, 'operator')
  const [used] = await c.db`select crashes, fences from runs where id = ${offer.run}`
  assert.deepEqual({ ...used }, { crashes: 0, fences: 0 })
  agent.close()
  await c.call(ops.runs.cancel, { run: offer.run })
})

test('what an agent holds of this epoch, or of none that it was told, goes on', async () => {
  await c.db`update cluster set begun_at = null`
  const later = await c.another()
  const other = await anAgent(later)
  const instance = anInstance({ cluster: later.deps.cluster })
  const first = await other.connect([], { instance })
  await aWorkflow(c, { slug: 'more' })
  await aRun(c, { workflow: 'more' })
  const offer = await takeNext(other, first)
  for (const cluster of [instance.cluster, undefined]) {
    const { cluster: _, ...rest } = instance
    const link = await other.dial()
    link.send(aHello({ instance: { ...rest, ...(cluster && { cluster }) }, holds: [placementOf(offer)] }))
    const welcome = await link.next('welcome')
    assert.deepEqual([welcome.stale, welcome.resume.length], [[], 1])
  }
  other.close()
})
