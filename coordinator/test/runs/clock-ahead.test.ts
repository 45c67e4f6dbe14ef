// The clock of this process jumps by months, and with it the ids of what it makes: there is no partition for them yet.
import assert from 'node:assert/strict'
import { after, before, test, type TestContext } from 'node:test'
import { newId, timeOf } from '@windlass/shared/ids.ts'
import { rows as runs } from '@windlass/shared/ops/runs/ops.ts'
import { aRunningAgent, type TestAgent } from '../_kit/agent.ts'
import { aCoordinatorOfItsOwn, aRun, runOf, type TestCoordinator } from '../_kit/coordinator.ts'
import { calls, parked } from '../_kit/journal.ts'
import { aWorkflow } from '../_kit/workflow.ts'

const MONTH_MS = 32 * 86_400_000

let c: TestCoordinator
const agents: TestAgent[] = []

before(async () => {
  c = await aCoordinatorOfItsOwn()
  await aWorkflow(c, { slug: 'any' })
})
after(async () => {
  for (const agent of agents) agent.close()
  await c.stop()
})

/** Ids never go back: one that was made then is enough for all that follow. */
function jump(t: TestContext): void {
  const at = timeOf(newId('run')) + 4 * MONTH_MS
  const clock = t.mock.method(Date, 'now', () => at)
  newId('run')
  clock.mock.restore()
}

test('a trigger finds no partition, and is served all the same, with a key and without', async (t) => {
  jump(t)
  assert.equal((await aRun(c, { workflow: 'any' })).status, 'queued')
  jump(t)
  const keyed = { org: c.org, workflow: 'any', idempotencyKey: 'once' }
  const { run } = await c.call(runs.trigger, keyed)
  assert.equal((await c.call(runs.trigger, keyed)).run.id, run.id)
  jump(t)
  const again = await c.call(runs.retry, { run: run.id })
  await c.call(runs.cancel, { run: again.run.id })
  jump(t)
  const many = await Promise.all(Array.from({ length: 20 }, () => aRun(c, { workflow: 'any' })))
  assert.equal(new Set(many.map(({ id }) => id)).size, 20)
  for (const { id } of many) await c.call(runs.cancel, { run: id })
  await c.call(runs.cancel, { run: run.id })
})

test('a parent that calls a child then is not given up', async (t) => {
  await aRun(c, { workflow: 'any' })
  const { agent, link, offer } = await aRunningAgent(c)
  agents.push(agent)
  jump(t)
  await link.report(offer, 2, calls(1, 'any'), parked('child'))
  const run = await runOf(c, offer.run)
  assert.equal(run.status, 'waiting_for_child')
  assert.equal(run.error, null)
  assert.ok(timeOf(run.waiting!.childRunIds![0]!) > Date.now() + MONTH_MS)
})
