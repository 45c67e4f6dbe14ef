import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { after, before, mock, test } from 'node:test'
import { ops } from '@windlass/shared/ops/index.ts'
import { Stripe } from 'stripe'
import { Webhook as Svix } from 'svix'
import {
  aConnection as connectionOf,
  aReceiverOf,
  type CreateConnection,
  nextNumber,
  push,
} from '../_kit/connections.ts'
import { aCoordinatorOfItsOwn, refusal, type TestCoordinator } from '../_kit/coordinator.ts'
import { aSession } from '../_kit/credentials.ts'
import { aKeyText } from '../_kit/environments.ts'
import { aHook, deliver, send } from '../_kit/inbound.ts'
import { untilPolled } from '../_kit/until.ts'
import { aWorkflow } from '../_kit/workflow.ts'

let c: TestCoordinator
let session: string

before(async () => {
  c = await aCoordinatorOfItsOwn({ SECRET_KEY: aKeyText() })
  session = await aSession(c.db, { orgId: c.orgId })
})
after(() => c.stop())

const aConnection = (of: CreateConnection) => connectionOf(c, session, of)
const taking = (connection: string, events: string[], more: object = {}) => aReceiverOf(c, connection, events, more)

const deliveryOf = async (id: string) => (await c.call(ops.deliveries.get, { delivery: id })).delivery

test('with a workflow the outcome is that of the workflow', async () => {
  const github = await aConnection({ kind: 'github' })
  await taking(github.name, ['push'])
  const filtered = await taking(github.name, ['push'], { filter: { ref: 'never' } })
  const { receipt } = await push(github, '{"ref":"x"}')
  assert.equal(receipt.delivery.outcome, 'triggered')
  const list = async (outcome: 'filtered' | 'triggered') =>
    (await c.call(ops.deliveries.list, { org: c.org, workflow: filtered.slug, outcome })).deliveries.length
  assert.deepEqual([await list('filtered'), await list('triggered')], [1, 0])
})

/** A command of Slack, the same each time within a second. */
async function aCommand() {
  const slack = await aConnection({ kind: 'slack' })
  await taking(slack.name, ['command:/deploy'])
  const body = 'command=%2Fdeploy&text=now'
  const t = String(Math.floor(Date.now() / 1000))
  const v0 = createHmac('sha256', slack.secret).update(`v0:${t}:${body}`).digest('hex')
  const type = 'application/x-www-form-urlencoded'
  const headers = { 'content-type': type, 'x-slack-signature': `v0=${v0}`, 'x-slack-request-timestamp': t }
  const outcomes = async () =>
    (await c.call(ops.connections.deliveries, { connection: slack.id })).deliveries.map(({ outcome }) => outcome)
  return { post: () => send(slack.url, { body, headers }), outcomes }
}

test('a copy of a command of Slack starts nothing', async () => {
  const { post, outcomes } = await aCommand()
  for (let n = 0; n < 2; n++) assert.equal((await post()).status, 200)
  assert.deepEqual(await outcomes(), ['duplicate', 'triggered'])
})

test('Slack is told to come again before it gives up, and what was late is not done twice', async () => {
  const { post, outcomes } = await aCommand()
  await c.db.begin(async (tx) => {
    await tx`lock table deliveries in exclusive mode`
    const late = await post()
    assert.deepEqual([late.status, late.error.code], [503, 'UNAVAILABLE'])
  })
  await untilPolled('the late one to be committed', async () => (await outcomes()).length > 0)
  assert.equal((await post()).status, 200)
  assert.deepEqual(await outcomes(), ['duplicate', 'triggered'])
})

test('a signature is known for as long as it serves', async () => {
  const dayMs = 86_400_000
  const scheme = { header: 'X-Sig', encoding: 'hex', signed: '{timestamp}{body}', timestampHeader: 'X-Time' } as const
  const slow = await aConnection({ kind: 'hmac', hmac: { ...scheme, toleranceMs: dayMs } })
  await taking(slow.name, ['*'])
  const t = String(Date.now() - 3_600_000)
  const signature = createHmac('sha256', slow.secret).update(`${t}{}`).digest('hex')
  const headers = { 'content-type': 'application/json', 'x-sig': signature, 'x-time': t }
  const post = async () => (await send(slow.url, { body: '{}', headers })).receipt.delivery.outcome
  assert.equal(await post(), 'triggered')
  const [{ leftMs }] = await c.db<[{ leftMs: number }]>`
    select extract(epoch from max(expires_at) - now())::float8 * 1000 as left_ms from delivery_keys`
  assert.ok(leftMs > 2 * dayMs - 600_000, String(leftMs))
  assert.equal(await post(), 'duplicate')
})

test('of two that take one name at once, one is told that it is taken', async () => {
  for (let n = 0; n < 5; n++) {
    const name = `wanted-${n}`
    const two = [await aConnection({ kind: 'github' }), await aConnection({ kind: 'github' })]
    const renamed = await Promise.allSettled(
      two.map(({ id }) => c.call(ops.connections.update, { connection: id, name })),
    )
    const refused = renamed.filter((one) => one.status === 'rejected')
    assert.equal(refused.length, 1)
    assert.ok(refusal('CONFLICT', 'name')(refused[0]!.reason))
  }
})

test('an event with characters that no column holds is taken and recorded', async () => {
  const stripe = await aConnection({ kind: 'stripe' })
  await taking(stripe.name, ['invoice.*'])
  const client = new Stripe('sk_test_none')
  for (const type of ['invoice.\\u0000paid', 'invoice.\\ud800paid', 'other\\u0000']) {
    const payload = `{"id":"evt_${nextNumber()}","type":"${type}"}`
    const header = client.webhooks.generateTestHeaderString({ payload, secret: stripe.secret })
    const headers = { 'content-type': 'application/json', 'stripe-signature': header }
    const { status, receipt } = await send(stripe.url, { body: payload, headers })
    assert.equal(status, 200, type)
    assert.equal(receipt.delivery.outcome, type.startsWith('invoice') ? 'triggered' : 'unmatched')
    assert.ok((await deliveryOf(receipt.delivery.id)).event!.includes('\ufffd'), type)
  }
})

test('what the input refuses is said, whatever characters its fields have', async () => {
  const stripe = await aConnection({ kind: 'stripe' })
  const inputSchema = { type: 'object', properties: { payload: { type: 'object', additionalProperties: false } } }
  await aWorkflow(c, { inputSchema, descriptor: { connections: [{ connection: stripe.name, events: ['*'] }] } })
  const payload = `{"id":"evt_${nextNumber()}","a\\u0000b\\udc00":1}`
  const header = new Stripe('sk_test_none').webhooks.generateTestHeaderString({ payload, secret: stripe.secret })
  const headers = { 'content-type': 'application/json', 'stripe-signature': header }
  const { status, receipt } = await send(stripe.url, { body: payload, headers })
  assert.deepEqual([status, receipt.delivery.outcome], [200, 'invalid_input'])
})

test('while a payload cannot be stored the sender is told to come again', async () => {
  const { slug } = await aWorkflow(c)
  const hook = await aHook(c, session, slug)
  const put = mock.method(c.deps.objects, 'put', async () => {
    throw new Error('the store is away')
  })
  const post = { body: Buffer.alloc(200_000, 0x62), headers: { 'content-type': 'text/plain' } }
  try {
    const refused = await deliver(hook, post)
    assert.deepEqual([refused.status, refused.error.code], [503, 'UNAVAILABLE'])
  } finally {
    put.mock.restore()
  }
  assert.equal((await deliver(hook, post)).receipt.delivery.outcome, 'triggered')
})

test('what one delivery starts is bounded, and the rest is told', async () => {
  const github = await aConnection({ kind: 'github' })
  const receivers = []
  for (let i = 0; i < 18; i++) receivers.push(await taking(github.name, ['push']))
  // Sixteen inputs of so many bytes are nearly 16 MiB.
  const { status, receipt } = await push(github, JSON.stringify({ text: 'x'.repeat(1_000_000) }))
  assert.equal(status, 200)
  assert.equal(receipt.runs.length, 16)
  const { delivery } = await c.call(ops.deliveries.get, { delivery: receipt.delivery.id })
  const rest = delivery.matches.filter(({ outcome }) => outcome === 'too_large')
  assert.deepEqual([delivery.matches.length, rest.length], [receivers.length, 2])
  assert.match(rest[0]!.reason ?? '', /all that one may start: 100, with 16 MiB/)
})

test('a copy is known by its signature, whatever its headers call it', async () => {
  const { slug } = await aWorkflow(c, { descriptor: { webhook: { dedupe: { header: 'X-Request-Id' } } } })
  const hook = await aHook(c, session, slug)
  const body = '{}'
  const at = new Date()
  const signature = new Svix(hook.secret).sign('msg_1', at, body)
  const seconds = String(Math.floor(at.getTime() / 1000))
  const asWebhook = { 'webhook-id': 'msg_1', 'webhook-timestamp': seconds, 'webhook-signature': signature }
  const asSvix = { 'svix-id': 'msg_1', 'svix-timestamp': seconds, 'webhook-signature': signature }
  const post = async (headers: Record<string, string>) =>
    (await deliver(hook, { body, headers, signature: null })).receipt.delivery.outcome
  assert.equal(await post({ ...asWebhook, 'x-request-id': '1' }), 'triggered')
  assert.equal(await post({ ...asWebhook, 'x-request-id': '2' }), 'duplicate')
  assert.equal(await post({ ...asSvix, 'x-request-id': '3' }), 'duplicate')
})
