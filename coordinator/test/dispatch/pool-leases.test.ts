import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { ops } from '@windlass/shared/ops/index.ts'
import { type Held, anAgent, placementOf, takeNext, type TestAgent } from '../_kit/agent.ts'
import { aCoordinator, aRun, type TestCoordinator } from '../_kit/coordinator.ts'
import { aWorkflow } from '../_kit/workflow.ts'

let c: TestCoordinator
const agents: TestAgent[] = []
let pools = 0

before(async () => {
  c = await aCoordinator()
})
after(async () => {
  for (const agent of agents) agent.close()
  await c.stop()
})

/** An agent in a pool of its own that executes a run. */
async function running(settings = {}): Promise<Held & { pool: string }> {
  const name = `leases-${++pools}`
  const { runnerPool } = await c.call(ops.pools.create, { org: c.org, name, settings })
  await aWorkflow(c, { slug: name, descriptor: { pool: name } })
  const agent = await anAgent(c, { pool: runnerPool.id })
  agents.push(agent)
  const link = await agent.connect()
  await aRun(c, { workflow: name })
  return { agent, link, offer: await takeNext(agent, link), pool: runnerPool.id }
}

/** In seconds, from the renewal on. */
async function leaseOf({ offer }: Held): Promise<number> {
  const [row] = await c.db<[{ seconds: number }]>`
    select round(extract(epoch from lease_expires_at - renewed_at))::int as seconds
    from placements where run_id = ${offer.run}`
  return row.seconds
}

async function beat(held: Held, n: number, fenceMs?: number) {
  held.link.send({ t: 'heartbeat', n, holds: [placementOf(held.offer)], ...(fenceMs && { fenceMs }) })
  return held.link.next('beat')
}

test('a pool without a word has the lease of the service, one with a word its own, from the acceptance on', async () => {
  const [usual, long] = [await running(), await running({ reassignAfterMs: 3_600_000 })]
  assert.deepEqual([await leaseOf(usual), await leaseOf(long)], [75, 3600])
  await Promise.all([beat(usual, 1, 50_000), beat(long, 1, 3_575_000)])
  assert.deepEqual([await leaseOf(usual), await leaseOf(long)], [75, 3600])
})

test('a lease that is raised holds at once; one that is lowered, once its agent says that it obeys', async () => {
  const held = await running()
  await c.call(ops.pools.update, { pool: held.pool, settings: { reassignAfterMs: 600_000 } })
  assert.equal((await beat(held, 1, 50_000)).settings?.fenceMs, 575_000)
  assert.equal(await leaseOf(held), 600)
  await beat(held, 2, 575_000)
  await c.call(ops.pools.update, { pool: held.pool, settings: { reassignAfterMs: null } })
  assert.equal((await beat(held, 3, 575_000)).settings?.fenceMs, 50_000)
  assert.equal(await leaseOf(held), 600, 'it may not have heard of it')
  await beat(held, 4, 50_000)
  assert.equal(await leaseOf(held), 75)
})

test('what an agent was promised before it lost its connection holds on the next one, before it is welcomed', async () => {
  const held = await running({ reassignAfterMs: 600_000 })
  await beat(held, 1, 575_000)
  await c.call(ops.pools.update, { pool: held.pool, settings: { reassignAfterMs: 60_000 } })
  held.link.close()
  await held.link.closed()
  await held.agent.connect([placementOf(held.offer)], { fenceMs: 575_000 })
  assert.equal(await leaseOf(held), 600)
})

test('an agent that says more than it was ever told keeps its runs no longer for that', async () => {
  const held = await running()
  const link = await held.agent.connect([placementOf(held.offer)], { fenceMs: 80_000_000 })
  assert.equal(await leaseOf(held), 75)
  await beat({ ...held, link }, 1, 80_000_000)
  assert.equal(await leaseOf(held), 75)
})

test('what one coordinator told holds at the next one, until its agent says that it obeys less', async () => {
  const held = await running({ reassignAfterMs: 600_000 })
  await c.call(ops.pools.update, { pool: held.pool, settings: { reassignAfterMs: null } })
  const after = held.agent.at(await c.another())
  agents.push(after)
  const link = await after.connect([placementOf(held.offer)], { fenceMs: 575_000 })
  assert.equal(await leaseOf(held), 600)
  await beat({ ...held, link }, 1, 50_000)
  assert.equal(await leaseOf(held), 75)
})

test('an agent that does not say what it obeys has what it was told before, until it was surely welcomed', async () => {
  const held = await running({ reassignAfterMs: 600_000 })
  await c.call(ops.pools.update, { pool: held.pool, settings: { reassignAfterMs: null } })
  const after = held.agent.at(await c.another())
  agents.push(after)
  const link = await after.connect([placementOf(held.offer)])
  assert.equal(await leaseOf(held), 600)
  await beat({ ...held, link }, 1)
  assert.equal(await leaseOf(held), 75)
})

test('an agent that says no fence of its own has a longer lease with its welcome', async () => {
  const held = await running()
  await c.call(ops.pools.update, { pool: held.pool, settings: { reassignAfterMs: 600_000 } })
  assert.equal((await beat(held, 1)).settings, undefined)
  held.link.close()
  await held.link.closed()
  await held.agent.connect([placementOf(held.offer)])
  assert.equal(await leaseOf(held), 600)
})
