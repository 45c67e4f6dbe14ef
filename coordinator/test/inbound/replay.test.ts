import assert from 'node:assert/strict'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { newId } from '@windlass/shared/ids.ts'
import { ops } from '@windlass/shared/ops/index.ts'
import { commitDeliveries, type NewDelivery } from '../../inbound/commit.ts'
import { entriesOf } from '../_kit/audit.ts'
import { aCoordinatorOfItsOwn, rawCall, refusal, type TestCoordinator } from '../_kit/coordinator.ts'
import { aKey, aSession } from '../_kit/credentials.ts'
import { aKeyText } from '../_kit/environments.ts'
import { aHook, deliver, type Hook, signature } from '../_kit/inbound.ts'
import { aWorkflow } from '../_kit/workflow.ts'

let c: TestCoordinator
let session: string
let made = 0

before(async () => {
  c = await aCoordinatorOfItsOwn({ SECRET_KEY: aKeyText(), LIMIT_UNVERIFIED_PER_MIN: 0 })
  session = await aSession(c.db, { orgId: c.orgId })
})
after(() => c.stop())

async function aReceiver(descriptor: Record<string, unknown> = {}): Promise<Hook & { slug: string }> {
  const { slug } = await aWorkflow(c, { slug: `taker-${++made}`, descriptor })
  return { ...(await aHook(c, session, slug)), slug }
}

const replay = (delivery: string, more: { unverified?: boolean } = {}, apiKey = c.apiKey) =>
  c.call(ops.deliveries.replay, { delivery, ...more }, { apiKey })
const listed = async (hook: Hook) =>
  (await c.call(ops.deliveries.list, { org: c.org })).deliveries.filter(({ source }) => source.id === hook.id)

test('a replay is the same bytes again, and no repetition', async () => {
  const hook = await aReceiver()
  const body = '{"n":  1}'
  const { receipt } = await deliver(hook, { body })
  const { delivery } = await replay(receipt.delivery.id)
  assert.equal(delivery.outcome, 'triggered')
  assert.equal(delivery.replayOf, receipt.delivery.id)
  assert.notEqual(delivery.matches[0]!.runId, receipt.runs[0]!.id)
  const payload = await rawCall(c, 'GET', `/v1/deliveries/${delivery.id}/payload`)
  assert.equal(await payload.text(), body)
  const [entry] = await entriesOf(c, { target: receipt.delivery.id })
  assert.equal(entry?.action, 'deliveries.replay')
  assert.deepEqual(entry?.after, { delivery: delivery.id })
})

test('while its workflow is disabled deliveries are 200 and recorded, and replayed afterwards', async () => {
  const hook = await aReceiver()
  await c.call(ops.workflows.disable, { org: c.org, workflow: hook.slug })
  const body = JSON.stringify({ text: 'x'.repeat(200_000) })
  const { status, receipt } = await deliver(hook, { body })
  assert.equal(status, 200)
  assert.equal(receipt.delivery.outcome, 'disabled')
  assert.deepEqual(receipt.runs, [])
  await assert.rejects(replay(receipt.delivery.id), refusal('WORKFLOW_DISABLED'))
  assert.equal((await listed(hook)).length, 1, 'a refused replay leaves no row')
  const stored = await readdir(join(c.deps.config.home, 'objects', 'deliveries'))
  assert.deepEqual(stored, [receipt.delivery.id], 'nor a copy of the payload')
  await c.call(ops.workflows.enable, { org: c.org, workflow: hook.slug })
  assert.equal((await replay(receipt.delivery.id)).delivery.outcome, 'triggered')
})

test('what was not verified is verified once more, by the secret of today', async () => {
  const hook = await aReceiver()
  const body = '{"n":1}'
  const other = await aReceiver()
  await deliver(hook, { body, signature: signature(other.secret, body) })
  const [refused] = await listed(hook)
  assert.equal(refused!.outcome, 'unverified')
  await assert.rejects(replay(refused!.id), refusal('DELIVERY_UNVERIFIED'))
  // As if the secret of the other were set here after all.
  await c.db`delete from owned_secrets where owner_id = ${hook.id}`
  const { secretKeys } = c.deps
  const ring = await secretKeys.ring()
  const sealed = ring.seal({ orgId: c.orgId, environment: '/owned', name: hook.id }, other.secret)
  await c.db`
    insert into owned_secrets (owner_id, slot, org_id, sealed) values (${hook.id}, 'current', ${c.orgId}, ${sealed})`
  assert.equal((await replay(refused!.id)).delivery.outcome, 'triggered')
})

test('a forged one is replayed by nobody but a session of an admin that says so', async () => {
  const hook = await aReceiver()
  await deliver(hook, { body: '{"forged":true}', signature: null })
  const [refused] = await listed(hook)
  const forced = { unverified: true }
  await assert.rejects(replay(refused!.id, forced), refusal('FORBIDDEN'), 'a key of an owner')
  const member = await aSession(c.db, { orgId: c.orgId, role: 'member' })
  await assert.rejects(replay(refused!.id, forced, member), refusal('FORBIDDEN'))
  const { delivery } = await replay(refused!.id, forced, session)
  assert.equal(delivery.outcome, 'triggered')
  const [entry] = await entriesOf(c, { target: refused!.id })
  assert.deepEqual(entry?.before, { outcome: 'unverified', unverified: true })
})

test('of an unverified payload up to 1 MiB is kept whole; a larger one is not replayed', async () => {
  const hook = await aReceiver()
  const mib = 1024 * 1024
  for (const bytes of [mib, mib + 1]) await deliver(hook, { body: Buffer.alloc(bytes, 0x61), signature: null })
  const [cut, whole] = await listed(hook)
  const shown = await c.call(ops.deliveries.get, { delivery: cut!.id })
  assert.deepEqual(
    [shown.delivery.payload.kept, shown.delivery.payload.bytes, shown.delivery.payload.text?.length],
    ['cut', mib + 1, 4096],
  )
  await assert.rejects(replay(cut!.id, { unverified: true }, session), refusal('PAYLOAD_NOT_KEPT'))
  const payload = await rawCall(c, 'GET', `/v1/deliveries/${whole!.id}/payload`)
  assert.equal((await payload.arrayBuffer()).byteLength, mib)
  assert.equal((await rawCall(c, 'GET', `/v1/deliveries/${cut!.id}/payload`)).status, 409)
})

test('a replay of a replay has the time at which the first one came in', async () => {
  const hook = await aReceiver({ webhook: { input: 'request' } })
  const { receipt } = await deliver(hook, { body: '{"n":1}' })
  await c.db`update deliveries set received_at = now() - interval '1 hour' where id = ${receipt.delivery.id}`
  const first = await c.call(ops.deliveries.get, { delivery: receipt.delivery.id })
  let last = receipt.delivery.id
  for (let n = 0; n < 2; n++) {
    const { delivery } = await replay(last)
    const run = delivery.matches[0]!.runId!
    const input = (await c.call(ops.runs.input, { run })).input as { receivedAt: number }
    assert.equal(input.receivedAt, first.delivery.receivedAt)
    last = delivery.id
  }
})

test('a replay whose commit was not heard of is written down once', async () => {
  const hook = await aReceiver()
  const { receipt } = await deliver(hook)
  const id = newId('dlv')
  const by = { kind: 'operator', id: 'ada@host', name: 'ada@host', via: 'admin', requestId: null } as const
  const target = { type: 'delivery', id: receipt.delivery.id, name: hook.slug }
  const item: NewDelivery = {
    id,
    orgId: c.orgId,
    sourceId: hook.id,
    sourceName: hook.slug,
    receivedAt: new Date(),
    event: null,
    replayOf: receipt.delivery.id,
    attempts: 1,
    method: 'POST',
    query: '',
    headers: '{}',
    contentType: null,
    payload: Buffer.from('{}'),
    payloadKey: null,
    payloadBytes: 2,
    isCut: false,
    decided: [],
    starts: [],
    audit: { by: { ...by, orgId: c.orgId }, change: { action: 'deliveries.replay', target } },
  }
  await commitDeliveries(c.db, [item])
  await commitDeliveries(c.db, [item])
  assert.equal((await entriesOf(c, { target: receipt.delivery.id })).length, 1)
})

test('the deliveries of a workflow are also those that were decided for none', async () => {
  const [hook, other] = [await aReceiver(), await aReceiver()]
  await deliver(hook, { body: '{"n":1}' })
  await deliver(hook, { signature: null })
  await deliver(other, { signature: null })
  const list = async (more: object = {}) =>
    (await c.call(ops.deliveries.list, { org: c.org, workflow: hook.slug, ...more })).deliveries
  assert.deepEqual(
    (await list()).map(({ outcome }) => outcome),
    ['unverified', 'triggered'],
  )
  const [unverified] = await list({ outcome: 'unverified' })
  assert.equal(unverified?.source.id, hook.id)
  assert.equal((await list({ outcome: 'triggered' })).length, 1)
  assert.equal((await list({ limit: 1 })).length, 1)
})

test('a viewer neither reads nor replays deliveries', async () => {
  const hook = await aReceiver()
  const { receipt } = await deliver(hook)
  const viewer = await aKey(c.db, { orgId: c.orgId, role: 'viewer' })
  await assert.rejects(replay(receipt.delivery.id, {}, viewer), refusal('FORBIDDEN'))
})

test('deliveries are found by workflow, outcome and time, page by page', async () => {
  const hook = await aReceiver()
  const began = Date.now()
  for (let n = 0; n < 5; n++) await deliver(hook, { body: `{"n":${n}}` })
  await deliver(hook, { body: '{' })
  const list = (more: object) => c.call(ops.deliveries.list, { org: c.org, workflow: hook.slug, ...more })
  assert.equal((await list({})).deliveries.length, 6)
  assert.equal((await list({ outcome: 'triggered' })).deliveries.length, 5)
  assert.equal((await list({ outcome: 'invalid_input' })).deliveries.length, 1)
  assert.equal((await list({ createdBefore: began - 60_000 })).deliveries.length, 0)
  assert.equal((await list({ createdAfter: began - 60_000 })).deliveries.length, 6)
  assert.equal((await list({ workflow: 'none' })).deliveries.length, 0)
  const first = await list({ limit: 4 })
  const second = await list({ limit: 4, cursor: first.nextCursor })
  const ids = [...first.deliveries, ...second.deliveries].map(({ id }) => id)
  assert.equal(new Set(ids).size, 6)
  assert.deepEqual(ids, ids.toSorted().toReversed())
  assert.equal(second.nextCursor, null)
})
