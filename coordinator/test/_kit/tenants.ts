/** Two orgs side by side that have one of everything, so that each can be asked for what is the other's. */
import { newId } from '@windlass/shared/ids.ts'
import { ops } from '@windlass/shared/ops/index.ts'
import type { Offer } from '@windlass/shared/wire/agent.ts'
import { anAgent, type Link, type TestAgent } from './agent.ts'
import { anOrg, asOwner, type TestCoordinator } from './coordinator.ts'
import { aKey, aSession } from './credentials.ts'
import { aParkedRun, question } from './waiting.ts'
import { filesOf } from './workflow-files.ts'

/** An org with everything that the path of an operation can name, under the name that the path gives it. */
export interface Tenant {
  /** The org's coordinator, as its owner sees it. */
  c: TestCoordinator
  org: string
  owner: string
  session: string
  agent: TestAgent
  link: Link
  /** Of a run that waits, parked, for the answer to `input`. */
  runToken: string
  otherRunToken: string
  ids: Record<string, string>
}

export async function twoTenants(c: TestCoordinator): Promise<{ ours: Tenant; theirs: Tenant }> {
  return { ours: await aTenant(c), theirs: await aTenant(asOwner(c, await anOrg(c))) }
}

async function aTenant(c: TestCoordinator): Promise<Tenant> {
  const { org } = c
  const session = await aSession(c.db, { orgId: c.orgId })
  const workflow = `of-${org}`
  await c.call(ops.workflows.create, { org, files: aPackage(workflow) })
  const environment = `for-${org}`
  await c.call(ops.environments.create, { org, name: environment })
  const { schedule } = await c.call(ops.schedules.create, { org, workflow, rate: '366d' })
  const name = `OF_${org.replaceAll('-', '_').toUpperCase()}`
  await c.call(ops.variables.set, { org, name, value: org })
  const { apiKey: victim } = await c.call(
    ops.keys.create,
    { org, name: 'to be revoked', role: 'viewer' },
    { apiKey: session },
  )
  const agent = await anAgent(c, { name: `agent of ${org}`, slots: 10 })
  const link = await agent.connect()
  const asking = await aParkedRun({ c, agent, link }, { workflow }, question())
  const other = await aParkedRun({ c, agent, link }, { workflow }, question())
  const inbound = await aDelivery(c, session, workflow)
  const { inputs } = await c.call(ops.inputs.list, { org, run: asking.run })
  const { registrationToken } = await c.call(ops.pools.createToken, { pool: c.poolId })
  // It changes nothing.
  const { job } = await c.call(ops.runs.bulkCancel, { org, filter: { tag: 'nobody has it' }, dryRun: true })
  return {
    c,
    org,
    session,
    agent,
    link,
    owner: await aKey(c.db, { orgId: c.orgId }),
    runToken: asking.token,
    otherRunToken: other.token,
    ids: {
      org,
      workflow,
      environment,
      name,
      run: asking.run,
      schedule: schedule.id,
      input: inputs[0]!.id,
      runner: agent.id,
      pool: c.poolId,
      token: registrationToken.id,
      key: victim.id,
      ...inbound,
      job: job.id,
      digest: digestOf(asking),
    },
  }
}

/** A webhook, a connection, and what came in there. */
async function aDelivery(c: TestCoordinator, session: string, workflow: string) {
  const { org } = c
  const { webhook } = await c.call(ops.webhooks.get, { org, workflow })
  const connection = newId('conn')
  const scheme = JSON.stringify({ hmac: null, bearer: null, event: null, dedupe: null })
  await c.db`
    insert into connections (id, org_id, name, kind, scheme, created_by)
    values (${connection}, ${c.orgId}, 'github', 'github', ${scheme}::text::json, ${session})`
  const delivery = newId('dlv')
  await c.db`
    insert into deliveries (id, org_id, source_id, source_name, outcome, method, query, headers, payload, payload_bytes)
    values (${delivery}, ${c.orgId}, ${connection}, 'github', 'unmatched', 'POST', '', '{}', '', 0)`
  return { hook: webhook.id, connection, delivery }
}

const digestOf = (offer: Offer) => offer.bundle.digest

/** The smallest package that can be deployed. */
export function aPackage(slug: string, version = 1) {
  return filesOf({
    'workflow.jsonc': JSON.stringify({ slug }),
    'index.ts': `export async function run() { return ${JSON.stringify(`${slug} ${version}`)} }\n`,
  })
}
