import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { RunId } from '@windlass/shared/ids.ts'
import { doubtful } from '../../engine/store/doubt.ts'
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
  const run = offer.run as RunId
  const isInDoubt = async () => (await doubtful(c.db, [run], 13_500)).has(run)
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
  // What has no process is in no doubt.
  await c.db`delete from placements where run_id = ${run}`
  await heard(30, 60)
  assert.equal(await isInDoubt(), false)
})
