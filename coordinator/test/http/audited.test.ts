import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { after, before, test } from 'node:test'
import { requestOf } from '@windlass/shared/ops/call.ts'
import { allOps, ops } from '@windlass/shared/ops/index.ts'
import type { AnyOp } from '@windlass/shared/ops/op.ts'
import { aCoordinator, type TestCoordinator } from '../_kit/coordinator.ts'
import { type Args, sampleArgs } from '../_kit/matrix-samples.ts'
import { type Tenant, twoTenants } from '../_kit/tenants.ts'
import { aBlockedRun } from '../_kit/waiting.ts'

let c: TestCoordinator
let ours: Tenant
let theirs: Tenant

const SECRET = 'hunter2 hunter2'

before(async () => {
  c = await aCoordinator({ SECRET_KEY: randomBytes(32).toString('base64') })
  ;({ ours, theirs } = await twoTenants(c))
})
after(async () => {
  for (const { agent } of [ours, theirs]) agent.close()
  await c.stop()
})

const trigger = async ({ ids, org }: Tenant) =>
  (await c.call(ops.runs.trigger, { org, workflow: ids['workflow'] ?? '' })).run.id

/** What a row changes where the samples of the matrix would be refused, or would take what others need. */
const CHANGES: Readonly<Record<string, (tenant: Tenant) => Promise<Args> | Args>> = {
  'runs.cancel': async (tenant) => ({ run: await trigger(tenant) }),
  'runs.restart': async ({ ids, agent, link }) => {
    const { run } = await aBlockedRun({ c, agent, link }, { workflow: ids['workflow'] ?? '' })
    return { run }
  },
  'environments.delete': async ({ org }) => {
    const { environment } = await c.call(ops.environments.create, { org, name: 'short-lived' })
    return { org, environment: environment.id }
  },
  'pools.delete': async ({ org }) => {
    const { runnerPool } = await c.call(ops.pools.create, { org, name: 'short-lived' })
    return { pool: runnerPool.id }
  },
  'secrets.set': ({ org }) => ({ org, name: 'A_SECRET', value: SECRET }),
  'secrets.delete': ({ org }) => ({ org, name: 'A_SECRET' }),
}

/** The run itself is its record, and says who started it. */
const EXEMPT = new Set(['runs.trigger'])

const changing = allOps.filter((row) => row.door === 'caller' && row.method !== 'GET')

async function send(row: AnyOp, args: Args, bearer: string): Promise<{ response: Response; text: string }> {
  const { url, method, headers, body } = requestOf({ url: c.url, apiKey: bearer }, row, args)
  const response = await fetch(url, { method, headers, body: body ?? null, signal: AbortSignal.timeout(20_000) })
  return { response, text: await response.text() }
}

interface Entry {
  action: string
  orgId: string
  actorKind: string
  via: string
  whole: string
}

const entriesOf = (response: Response) => c.db<Entry[]>`
  select action, org_id, actor_kind, via, row_to_json(audit_log)::text as whole
  from audit_log
  where request_id = ${response.headers.get('x-request-id')}`

const entryCount = async () => (await c.db<[{ count: number }]>`select count(*)::int from audit_log`)[0].count

// One after the other: a blocked run is made by taking the next one from the queue, so it comes before there are others.
const inOrder = [...changing].sort((a, b) => Number(b.id === 'runs.restart') - Number(a.id === 'runs.restart'))

for (const row of inOrder) {
  const isExempt = EXEMPT.has(row.id)
  test(`${row.id} leaves ${isExempt ? 'no entry' : 'one entry'} in the audit log`, async () => {
    const args = await (CHANGES[row.id]?.(ours) ?? sampleArgs(row, ours))
    const { response, text } = await send(row, args, row.sessionOnly ? ours.session : ours.owner)
    assert.ok(response.ok, `${response.status} ${text}`)
    const entries = await entriesOf(response)
    if (isExempt) return assert.deepEqual([...entries], [])
    const [entry, ...more] = entries
    assert.deepEqual(more, [])
    assert.equal(entry?.action, row.id)
    assert.deepEqual([entry.orgId, entry.via], [c.orgId, 'rest'])
    assert.equal(entry.actorKind, row.sessionOnly ? 'session' : 'key')
    for (const secret of [SECRET, ours.owner, ours.session, ...secretsIn(text)])
      assert.ok(!entry.whole.includes(secret), `the entry holds ${secret}: ${entry.whole}`)
  })
}

/** Keys and tokens that the answer shows this once. */
function secretsIn(text: string): string[] {
  return text.match(/\bwlr?s?_[0-9A-Za-z]{46}\b/g) ?? []
}

test('what is read or refused leaves no entry', async () => {
  const before = await entryCount()
  for (const row of allOps.filter((one) => one.door === 'caller')) {
    if (row.wire === 'sse') continue
    const args = sampleArgs(row, ours)
    if (row.method === 'GET') await send(row, args, ours.owner)
    else for (const bearer of ['nonsense', theirs.owner]) await send(row, args, bearer)
  }
  assert.equal(await entryCount(), before)
})
