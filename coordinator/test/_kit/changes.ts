/** Calls that really change something, one for each row of the table that does. */
import { allOps, ops } from '@windlass/shared/ops/index.ts'
import { type AnyOp, isForCallers } from '@windlass/shared/ops/op.ts'
import { type Args, sampleArgs } from './matrix-samples.ts'
import type { Tenant } from './tenants.ts'
import { aJob } from './a-job.ts'
import { aBlockedRun } from './waiting.ts'
import { aVersion, aWorkflow } from './workflow.ts'

export const SECRET = 'hunter2 hunter2'

const trigger = async ({ c, ids, org }: Tenant) =>
  (await c.call(ops.runs.trigger, { org, workflow: ids['workflow'] ?? '' })).run.id

/** What a row changes where the samples of the matrix would be refused, or would take what others need. */
const CHANGES: Readonly<Record<string, (tenant: Tenant) => Promise<Args> | Args>> = {
  'workflows.delete': async ({ c, org }) => ({ org, workflow: (await aWorkflow(c)).slug }),
  'workflows.restore': async ({ c, org }) => {
    const { id } = await aWorkflow(c)
    await c.call(ops.workflows.delete, { org, workflow: id })
    return { org, workflow: id }
  },
  'workflows.promote': async ({ c, org }) => {
    const workflow = await aWorkflow(c)
    await aVersion(c, workflow)
    return { org, workflow: workflow.slug, version: 1 }
  },
  'schedules.delete': async ({ c, org, ids }) => {
    const { schedule } = await c.call(ops.schedules.create, { org, workflow: ids['workflow'] ?? '', rate: '1h' })
    return { schedule: schedule.id }
  },
  'connections.delete': async ({ c, org, session }) => {
    const { connection } = await c.call(
      ops.connections.create,
      { org, name: 'short-lived', kind: 'stripe' },
      { apiKey: session },
    )
    return { connection: connection.id }
  },
  'runs.cancel': async (tenant) => ({ run: await trigger(tenant) }),
  'runs.delete': async (tenant) => {
    const run = await trigger(tenant)
    await tenant.c.call(ops.runs.cancel, { run })
    return { run }
  },
  'jobs.cancel': async ({ c }) => ({ job: await aJob(c.deps.db, c.orgId, 'workflow-delete') }),
  'runs.restart': async ({ c, ids, agent, link }) => {
    const { run } = await aBlockedRun({ c, agent, link }, { workflow: ids['workflow'] ?? '' })
    return { run }
  },
  'environments.delete': async ({ c, org }) => {
    const { environment } = await c.call(ops.environments.create, { org, name: 'short-lived' })
    return { org, environment: environment.id }
  },
  'pools.delete': async ({ c, org }) => {
    const { runnerPool } = await c.call(ops.pools.create, { org, name: 'short-lived' })
    return { pool: runnerPool.id }
  },
  'pools.revokeToken': async ({ c }) => {
    const { registrationToken } = await c.call(ops.pools.createToken, { pool: c.poolId })
    return { token: registrationToken.id }
  },
  'secrets.set': ({ org }) => ({ org, name: 'A_SECRET', value: SECRET }),
  'secrets.delete': ({ org }) => ({ org, name: 'A_SECRET' }),
}

export const changeArgs = async (row: AnyOp, tenant: Tenant): Promise<Args> =>
  (await CHANGES[row.id]?.(tenant)) ?? sampleArgs(row, tenant)

/**
 * One after the other: a blocked run is made by taking the next one from the queue, so it comes before there are
 * others.
 */
export const changingOps = allOps
  .filter((row) => isForCallers(row) && row.method !== 'GET')
  .sort((a, b) => Number(b.id === 'runs.restart') - Number(a.id === 'runs.restart'))
