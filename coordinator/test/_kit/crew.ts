/** A pool of its own with a workflow and an agent in it, so that no test waits behind another's runs. */
import type { PoolId } from '@windlass/shared/ids.ts'
import { ops } from '@windlass/shared/ops/index.ts'
import { anAgent } from './agent.ts'
import type { TestCoordinator } from './coordinator.ts'
import type { Crew } from './waiting.ts'
import { aWorkflow } from './workflow.ts'

let pools = 0

export async function aPool(
  c: TestCoordinator,
  descriptor: Record<string, unknown> = {},
): Promise<{ pool: string; workflow: string }> {
  const name = `pool-${++pools}`
  await c.call(ops.pools.create, { org: c.org, name })
  const { slug } = await aWorkflow(c, { slug: `of-${name}`, descriptor: { pool: name, ...descriptor } })
  return { pool: name, workflow: slug }
}

async function poolId(c: TestCoordinator, name: string): Promise<PoolId> {
  const [row] = await c.db<{ id: PoolId }[]>`select id from runner_pools where name = ${name} and org_id = ${c.orgId}`
  return row!.id
}

/** A connected agent. What its hello says, and that it has just asked for work, is noted. */
export async function aCrew(c: TestCoordinator, pool: string, slots = 4): Promise<Crew> {
  const agent = await anAgent(c, { pool: await poolId(c, pool), slots, name: 'east-1' })
  const link = await agent.connect()
  await c.db`update runners set slots = ${slots}, last_poll_at = now() where id = ${agent.id}`
  return { c, agent, link }
}
