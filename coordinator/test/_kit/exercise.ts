/** A broad use of one org: every operation of the table, and runs that go through what runs can go through. */
import type { RunId } from '@windlass/shared/ids.ts'
import { requestOf } from '@windlass/shared/ops/call.ts'
import { allOps, ops } from '@windlass/shared/ops/index.ts'
import { type AnyOp, type Credential, isSessionOnly } from '@windlass/shared/ops/op.ts'
import { pathNames } from '@windlass/shared/ops/fill-route.ts'
import { DEADLINE_MS } from '@windlass/shared/test/_kit/until.ts'
import { cleanVariableSets } from '../../environments/sets.ts'
import { cleanWindows } from '../../limits/open.ts'
import { retentionTurn } from '../../retention/work.ts'
import { cleanTokens } from '../../runners/register.ts'
import { cleanIdempotencyKeys } from '../../idempotency/once.ts'
import { cleanTokenKeys } from '../../runs/token-keys.ts'
import { unlocked } from '../../engine/store/placements.ts'
import { fireDue } from '../../engine/commit/fire.ts'
import { anAgent, end, line, placementOf, returned, start } from './agent.ts'
import { changeArgs, changingOps } from './changes.ts'
import { aRun } from './coordinator.ts'
import { stepped, wakeOf } from './journal.ts'
import { type Args, sampleArgs } from './matrix-samples.ts'
import type { Tenant } from './tenants.ts'
import { accepted, aParkedRun, call, question, sleepFor } from './waiting.ts'

const RETENTION_ACTS_MS = 2 * 3_600_000

/** To build the agent's package, for itself or for its script, asks no table, and took 51 s on a busy machine. */
const WITHOUT_DATABASE: readonly string[] = [ops.service.download.id, ops.service.install.id]

/** May be repeated: then some things are there already, or gone, and a few calls are refused. */
export async function exercise(tenant: Tenant): Promise<void> {
  await someRuns(tenant)
  await someLists(tenant)
  const tokens: Record<Credential, string> = {
    key: tenant.owner,
    session: tenant.session,
    run: tenant.runToken,
    runner: await tenant.agent.token(),
  }
  const asked = allOps.filter(
    (row) => row.method === 'GET' && (row.wire ?? 'bytes') === 'bytes' && !WITHOUT_DATABASE.includes(row.id),
  )
  for (const row of asked)
    await send(tenant, row, sampleArgs(row, tenant), row.credentials[0] ? tokens[row.credentials[0]] : '')
  // What is revoked and forgotten is another runner, or the next exercise would have none.
  const spare = await anAgent(tenant.c, { name: 'spare' })
  const other = { ...tenant, ids: { ...tenant.ids, runner: spare.id } }
  for (const row of changingOps) {
    const one = pathNames(row.path).includes('runner') ? other : tenant
    await send(one, row, await changeArgs(row, one), tenant.owner)
  }
  await clean(tenant)
  // Sent only after a lock timeout.
  await unlocked(tenant.c.deps.db, [tenant.ids['run'] as RunId])
}

/** What is done once an hour: the test must not depend on the minute. */
async function clean({ c: { deps, orgId } }: Tenant): Promise<void> {
  await cleanTokens(deps)
  await cleanVariableSets(deps)
  await cleanTokenKeys(deps)
  await cleanWindows(deps)
  await cleanIdempotencyKeys(deps)
  // The org keeps its runs for 90 days by now: none is deleted, but all is looked for.
  const databaseClock = { now: () => Date.now() + RETENTION_ACTS_MS, aheadMs: () => 0 }
  await retentionTurn({ ...deps, databaseClock }, { orgId })
}

async function send({ c, session }: Tenant, row: AnyOp, args: Args, token: string): Promise<void> {
  const base = { url: c.url, apiKey: isSessionOnly(row) ? session : token }
  const { url, method, headers, body } = requestOf(base, row, args)
  const response = await fetch(url, { method, headers, body: body ?? null, signal: AbortSignal.timeout(DEADLINE_MS) })
  const text = await response.text()
  if (response.status >= 500) throw new Error(`${row.id} answers ${response.status} ${text}`)
}

/**
 * One that is done in steps; one that waits for a child, a person and the clock; one that fails, is retried and is
 * cancelled.
 */
async function someRuns(tenant: Tenant): Promise<void> {
  const { c, link, ids, org } = tenant
  const workflow = ids['workflow']!
  await c.call(ops.runs.trigger, { org, workflow, tags: ['nightly'] }, { headers: { 'idempotency-key': 'once' } })
  const plain = await accepted(tenant)
  await link.report(plain, 1, start(), line('hello'), stepped(1, 'done'))
  await link.heartbeat(1, placementOf(plain))
  await link.report(plain, 4, end(returned(1)))

  // With a schema, so that it is asked who holds the run.
  const asked = question({ schemaText: '{"type":"boolean"}' })
  const waiting = await aParkedRun(tenant, { workflow }, call(workflow), asked, sleepFor(1))
  const child = await accepted(tenant)
  await link.report(child, 1, start(), end(returned('from the child')))
  const { inputs } = await c.call(ops.inputs.list, { org, run: waiting.run })
  await c.call(ops.inputs.respond, { input: inputs[0]!.id, answer: true })
  await fireDue(c.deps)
  await wakeOf(link, waiting)
  await link.report(
    waiting,
    6,
    ['resume', Date.now()],
    end({ how: 'threw', error: { name: 'E', message: 'no' } } as never),
  )
  const { run } = await c.call(ops.runs.retry, { run: waiting.run })
  await c.call(ops.runs.cancel, { run: run.id })
}

async function someLists({ c, ids, org }: Tenant): Promise<void> {
  const workflow = ids['workflow']!
  const filters: Args[] = [{}, { workflow }, { tag: 'nightly' }, { status: ['failed'] }, { status: ['queued'] }]
  for (const filter of filters) await c.call(ops.runs.list, { org, ...filter })
  await c.call(ops.audit.list, { org, target: ids['run'] })
  await c.call(ops.inputs.list, { org, status: ['answered'] })
  await aRun(c, { workflow }).then(({ id }) => c.call(ops.runs.cancel, { run: id }))
}
