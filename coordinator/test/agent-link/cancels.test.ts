// Agents with thousands of cancelled runs that accepted one of them again and again were sent all orders each time.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { ops } from '@windlass/shared/ops/index.ts'
import { aRunningAgent, type Held, placementOf, takeNext } from '../_kit/agent.ts'
import { aCoordinator, aRun, type TestCoordinator } from '../_kit/coordinator.ts'
import { aWorkflow } from '../_kit/workflow.ts'

let c: TestCoordinator
let held: Held

before(async () => {
  c = await aCoordinator()
  await aWorkflow(c, { slug: 'any' })
  await aRun(c, { workflow: 'any' })
  held = await aRunningAgent(c)
})
after(async () => {
  held.agent.close()
  await c.stop()
})

test('an accept of a run that is being cancelled brings the order for it, and no other', async () => {
  const { agent, link, offer } = held
  await aRun(c, { workflow: 'any' })
  const other = await takeNext(agent, link)
  for (const { run } of [offer, other]) {
    await c.call(ops.runs.cancel, { run, reason: 'not wanted' })
    while (!(await link.next('cancel')).runs.some((order) => order.run === run));
  }
  const { runs } = await link.accept(other)
  assert.deepEqual(runs, [placementOf(other)])
  const order = { run: other.run, epoch: other.epoch, why: 'cancelled', reason: 'not wanted', graceMs: 10_000 }
  assert.deepEqual((await link.next('cancel')).runs, [order])
})

test('cancels of one agent that come one by one are looked for together', async (t) => {
  const { agent, link } = held
  await aRun(c, { workflow: 'any' })
  const { run } = await takeNext(agent, link)
  const { mock } = t.mock.method(c.deps.sockets.cancels, 'share')
  await c.call(ops.runs.cancel, { run, reason: 'not wanted' })
  assert.deepEqual(
    mock.calls.map(({ arguments: [key, orgId] }) => [key, orgId]),
    [[agent.id, c.orgId]],
  )
  assert.ok((await link.next('cancel')).runs.some((order) => order.run === run))
})
