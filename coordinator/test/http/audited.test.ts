import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { after, before, test } from 'node:test'
import { requestOf } from '@windlass/shared/ops/call.ts'
import { allOps } from '@windlass/shared/ops/index.ts'
import { type AnyOp, isForCallers, isSessionOnly } from '@windlass/shared/ops/op.ts'
import { DEADLINE_MS } from '@windlass/shared/test/_kit/until.ts'
import { aCoordinatorOfItsOwn, type TestCoordinator } from '../_kit/coordinator.ts'
import { changeArgs, changingOps, SECRET } from '../_kit/changes.ts'
import { type Args, sampleArgs } from '../_kit/matrix-samples.ts'
import { type Tenant, twoTenants } from '../_kit/tenants.ts'

let c: TestCoordinator
let ours: Tenant
let theirs: Tenant

before(async () => {
  c = await aCoordinatorOfItsOwn({ SECRET_KEY: randomBytes(32).toString('base64') })
  ;({ ours, theirs } = await twoTenants(c))
})
after(async () => {
  for (const { agent } of [ours, theirs]) agent.close()
  await c.stop()
})

/** The run itself is its record, and says who started it. A test of filters changes nothing. */
const EXEMPT = new Set(['runs.trigger', 'runs.batch', 'connections.test'])

async function send(row: AnyOp, args: Args, token: string): Promise<{ response: Response; text: string }> {
  const { url, method, headers, body } = requestOf({ url: c.url, apiKey: token }, row, args)
  const response = await fetch(url, { method, headers, body: body ?? null, signal: AbortSignal.timeout(DEADLINE_MS) })
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

for (const row of changingOps) {
  const isExempt = EXEMPT.has(row.id)
  test(`${row.id} leaves ${isExempt ? 'no entry' : 'one entry'} in the audit log`, async () => {
    const args = await changeArgs(row, ours)
    const { response, text } = await send(row, args, isSessionOnly(row) ? ours.session : ours.owner)
    assert.ok(response.ok, `${response.status} ${text}`)
    const entries = await entriesOf(response)
    if (isExempt) return assert.deepEqual([...entries], [])
    const [entry, ...more] = entries
    assert.deepEqual(more, [])
    assert.equal(entry?.action, row.id)
    assert.deepEqual([entry.orgId, entry.via], [c.orgId, 'rest'])
    assert.equal(entry.actorKind, isSessionOnly(row) ? 'session' : 'key')
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
  for (const row of allOps.filter((one) => isForCallers(one))) {
    if (row.wire === 'sse') continue
    const args = sampleArgs(row, ours)
    if (row.method === 'GET') await send(row, args, ours.owner)
    else for (const token of ['nonsense', theirs.owner]) await send(row, args, token)
  }
  assert.equal(await entryCount(), before)
})
