// The sleep of a parent is over while the database has yet to take what agents told: its child may have ended.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { holdBack } from '../../engine/commit/held-timers.ts'
import { aRunningAgent, start, takeNext } from '../_kit/agent.ts'
import { aCoordinator, aRun, type TestCoordinator } from '../_kit/coordinator.ts'
import { calls, parked, sleeps } from '../_kit/journal.ts'
import { aWorkflow } from '../_kit/workflow.ts'

let c: TestCoordinator

before(async () => {
  // It has no pulse, so that its own look at timers holds this one too.
  c = await aCoordinator()
})
after(() => c.stop())

test('the sleep of a parent waits for the end of a child that has yet to be taken', async () => {
  const { slug } = await aWorkflow(c)
  const { id } = await aRun(c, { workflow: slug })
  const { agent, link, offer } = await aRunningAgent(c)
  await link.report(offer, 1, start(), calls(1, slug), sleeps(2, 3_600_000), parked('sleep'))
  const child = await takeNext(agent, link)
  await link.report(child, 1, start())
  // In no doubt by themselves, however long this takes.
  await c.db`
    update runners
    set last_heartbeat_at = now() - interval '1 second', connected_at = now() - interval '1 hour'
    where id = ${agent.id}`
  await c.db`update timers set due_at = now() where run_id = ${id} and kind = 'sleep'`
  const due: Parameters<typeof holdBack>[1] = [{ runId: id, orgId: c.orgId, kind: 'sleep', n: 2, inMs: 0 }]
  const look = (isThere: boolean) =>
    holdBack(
      { ...c.deps, silentMs: () => 3_600_000, grace: { now: () => undefined }, backlog: { isThere: () => isThere } },
      due,
      () => Promise.reject(new Error('it has a short journal')),
    )
  assert.deepEqual(await look(true), [])
  assert.deepEqual(await look(false), due)
  agent.close()
})
