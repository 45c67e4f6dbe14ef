import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { isRunInDoubt } from '../../engine/commit/in-doubt.ts'
import { aRunningAgent } from '../_kit/agent.ts'
import { aCoordinator, aRun, type TestCoordinator } from '../_kit/coordinator.ts'
import { aWorkflow } from '../_kit/workflow.ts'

let c: TestCoordinator

before(async () => {
  c = await aCoordinator()
  await aWorkflow(c, { slug: 'any' })
})
after(() => c.stop())

test('a run is in doubt while its agent is silent, and a moment after it is back', async () => {
  await aRun(c, { workflow: 'any' })
  const { agent, offer } = await aRunningAgent(c)
  const { run } = offer
  const isInDoubt = async () => {
    const [row] = await c.db<[{ it: boolean }]>`select ${isRunInDoubt(c.db, c.db`${run}`, 13_500)} as it`
    return row.it
  }
  const heard = (secondsAgo: number, connectedAgo: number) => c.db`
    update runners
    set last_heartbeat_at = now() - ${secondsAgo} * interval '1 second',
        connected_at = now() - ${connectedAgo} * interval '1 second'
    where id = ${agent.id}`
  await heard(0, 0)
  assert.equal(await isInDoubt(), true)
  await heard(5, 60)
  assert.equal(await isInDoubt(), false)
  await heard(30, 60)
  assert.equal(await isInDoubt(), true)
  await c.db`update runners set connected_at = null, last_heartbeat_at = now() where id = ${agent.id}`
  assert.equal(await isInDoubt(), false)
  await c.db`update runners set disconnected_at = now() where id = ${agent.id}`
  assert.equal(await isInDoubt(), true)
  // What has no process is in no doubt.
  await c.db`delete from placements where run_id = ${run}`
  await heard(30, 60)
  assert.equal(await isInDoubt(), false)
})
