import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { ops } from '@windlass/shared/ops/index.ts'
import { Webhook as Standard } from 'standardwebhooks'
import { entriesOf } from '../_kit/audit.ts'
import { aCoordinatorOfItsOwn, anOrg, rawCall, refusal, runOf, type TestCoordinator } from '../_kit/coordinator.ts'
import { aSession } from '../_kit/credentials.ts'
import { aKeyText } from '../_kit/environments.ts'
import { aHook, deliver, type Hook, send, signature } from '../_kit/inbound.ts'
import { aWorkflow } from '../_kit/workflow.ts'

let c: TestCoordinator
let session: string
let hook: Hook

before(async () => {
  c = await aCoordinatorOfItsOwn({
    SECRET_KEY: aKeyText(),
    LIMIT_DELIVERIES_PER_MIN: 0,
    LIMIT_UNVERIFIED_PER_MIN: 0,
    MAX_DELIVERY: 2_000_000,
  })
  session = await aSession(c.db, { orgId: c.orgId })
  await aWorkflow(c, { slug: 'taker' })
  hook = await aHook(c, session, 'taker')
})
after(() => c.stop())

const inputOf = async (run: string) => (await c.call(ops.runs.input, { run })).input
const deliveryOf = async (id: string) => (await c.call(ops.deliveries.get, { delivery: id })).delivery

test('a signed delivery starts a run, and both are there when it is answered', async () => {
  const body = '{"order": 12345678901234567890, "text": "Zürich 😀"}'
  const { status, receipt } = await deliver(hook, { body })
  assert.equal(status, 200)
  assert.equal(receipt.delivery.outcome, 'triggered')
  const started = receipt.runs[0]!
  assert.deepEqual(started, { id: started.id, workflow: 'taker', status: 'queued' })
  const run = await runOf(c, started.id)
  assert.deepEqual(run.trigger, { kind: 'webhook', id: hook.id })
  const answer = await rawCall(c, 'GET', `/v1/runs/${run.id}/input`)
  assert.ok((await answer.text()).includes('12345678901234567890'), 'digits are kept')
  const delivery = await deliveryOf(receipt.delivery.id)
  assert.deepEqual(
    delivery.matches.map(({ workflow, outcome, runId }) => [workflow.slug, outcome, runId]),
    [['taker', 'triggered', run.id]],
  )
  assert.equal(delivery.source.kind, 'webhook')
  assert.equal(delivery.payload.text, body)
  const payload = await rawCall(c, 'GET', `/v1/deliveries/${delivery.id}/payload`)
  assert.equal(payload.headers.get('content-type'), 'application/json')
  assert.equal(await payload.text(), body)
})

test('the webhook is there from the first deploy on, and takes nothing without a secret', async () => {
  await aWorkflow(c, { slug: 'fresh' })
  const { webhook } = await c.call(ops.webhooks.get, { org: c.org, workflow: 'fresh' })
  assert.equal(webhook.rotatedAt, null)
  assert.match(webhook.urlNote!, /WINDLASS_BASE_URL/)
  const refused = await deliver({ url: webhook.url, id: webhook.id, secret: 'x' })
  assert.equal(refused.status, 401)
  assert.equal(refused.error.code, 'UNVERIFIED')
  const { deliveries } = await c.call(ops.deliveries.list, { org: c.org, workflow: undefined, outcome: 'unverified' })
  assert.equal(deliveries.find(({ source }) => source.id === webhook.id)?.reason, 'No secret is set here yet.')
})

test('altered, old, foreign and unsigned ones are refused, recorded, and not told why', async () => {
  const body = '{"n":1}'
  const sixMinutes = 360_000
  const posts = [
    { body: '{"n":2}', signature: signature(hook.secret, body) },
    { body, signature: signature(hook.secret, body, Date.now() - sixMinutes) },
    { body, signature: signature('whsec_other', body) },
    { body, signature: null },
  ]
  const reasons = new Set<string | null>()
  for (const post of posts) {
    const { status, error, text } = await deliver(hook, post)
    assert.equal(status, 401)
    assert.equal(error.code, 'UNVERIFIED')
    assert.ok(!/signature|signed|secret/i.test(text), text)
    const { deliveries } = await c.call(ops.deliveries.list, { org: c.org, outcome: 'unverified', limit: 1 })
    reasons.add(deliveries[0]!.reason)
    assert.deepEqual(deliveries[0]!.matches, [])
  }
  assert.equal(reasons.size, 4 - 1, 'an altered body looks like another secret')
})

test('a body of any type becomes the input', async () => {
  const inputs = []
  const posts: [string, string][] = [
    ['text/plain', 'hello'],
    ['application/x-www-form-urlencoded', 'a=1&a=2&b=x+y'],
    ['application/octet-stream', 'raw'],
  ]
  for (const [type, body] of posts) {
    const { receipt } = await deliver(hook, { body, headers: { 'content-type': type } })
    inputs.push(await inputOf(receipt.runs[0]!.id))
  }
  assert.deepEqual(inputs, [
    { text: 'hello' },
    { a: ['1', '2'], b: 'x y' },
    { base64: Buffer.from('raw').toString('base64'), contentType: 'application/octet-stream' },
  ])
})

test('with `input: request` the program gets the request, without credentials', async () => {
  await aWorkflow(c, { slug: 'whole', descriptor: { webhook: { input: 'request', dedupe: { field: 'id' } } } })
  const whole = await aHook(c, session, 'whole')
  const { receipt } = await deliver(
    { ...whole, url: `${whole.url}?a=1&a=2` },
    { body: '{"id":"1"}', headers: { authorization: 'Bearer hush', 'x-mine': 'yes' } },
  )
  const input = (await inputOf(receipt.runs[0]!.id)) as { headers: Record<string, string> } & Record<string, unknown>
  assert.deepEqual(input['body'], { id: '1' })
  assert.deepEqual(input['query'], { a: ['1', '2'] })
  assert.equal(input['method'], 'POST')
  assert.equal(input.headers['authorization'], '[redacted]')
  assert.equal(input.headers['x-mine'], 'yes')
  const again = await deliver(whole, { body: '{"id":"1", "again": true}' })
  assert.equal(again.receipt.delivery.outcome, 'duplicate')
  assert.deepEqual(again.receipt.runs, receipt.runs)
})

test('a copy whose signature is written in another way starts nothing', async () => {
  const { slug } = await aWorkflow(c)
  const own = await aHook(c, session, slug)
  const signed = signature(own.secret, '{}')
  const first = await deliver(own, { signature: signed })
  for (const written of [`${signed},x=1`, `${signed},v1=00`, signed.replace(',', ' ,')]) {
    const { delivery, runs } = (await deliver(own, { signature: written })).receipt
    assert.deepEqual([delivery.outcome, runs], ['duplicate', first.receipt.runs], written)
  }
})

test('a thousand copies of one delivery at once start one run', async () => {
  const body = '{"copy":true}'
  const signed = signature(hook.secret, body)
  const answers = await Promise.all(Array.from({ length: 1000 }, () => deliver(hook, { body, signature: signed })))
  assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([200]))
  const runs = new Set(answers.flatMap(({ receipt }) => receipt.runs.map(({ id }) => id)))
  assert.equal(runs.size, 1)
  const outcomes = answers.map(({ receipt }) => receipt.delivery.outcome)
  assert.equal(outcomes.filter((outcome) => outcome === 'triggered').length, 1)
  assert.equal(outcomes.filter((outcome) => outcome === 'duplicate').length, 999)
  const [{ count }] = await c.db<
    [{ count: number }]
  >`select count(*)::int as count from runs where id = ${[...runs][0]!}`
  assert.equal(count, 1)
})

test('a secret is rotated with an overlap, or ended at once', async () => {
  await aWorkflow(c, { slug: 'rotated' })
  const first = await aHook(c, session, 'rotated')
  const rotate = (overlapMs: number) =>
    c.call(ops.webhooks.rotate, { org: c.org, workflow: 'rotated', overlapMs }, { apiKey: session })
  const second = await rotate(60_000)
  assert.ok(second.webhook.previousSecretUntil! > Date.now())
  assert.equal((await deliver(first, { body: '{"n":1}' })).status, 200)
  assert.equal((await deliver({ ...first, secret: second.secret }, { body: '{"n":2}' })).status, 200)
  const third = await rotate(0)
  assert.equal(third.webhook.previousSecretUntil, null)
  assert.equal((await deliver({ ...first, secret: second.secret }, { body: '{"n":3}' })).status, 401)
  assert.equal((await deliver({ ...first, secret: third.secret }, { body: '{"n":4}' })).status, 200)
  const entries = await entriesOf(c, { target: first.id })
  assert.deepEqual(
    entries.map(({ action }) => action),
    ['webhooks.rotate', 'webhooks.rotate', 'webhooks.rotate'],
  )
  assert.ok(!JSON.stringify(entries).includes('whsec_'))
})

test('keys neither rotate nor set; a bearer is taken where it is asked for', async () => {
  await aWorkflow(c, { slug: 'borne' })
  const args = { org: c.org, workflow: 'borne' }
  await assert.rejects(c.call(ops.webhooks.rotate, args), refusal('FORBIDDEN'))
  await assert.rejects(c.call(ops.webhooks.set, { ...args, auth: 'bearer' }), refusal('FORBIDDEN'))
  const borne = await aHook(c, session, 'borne')
  const { webhook } = await c.call(ops.webhooks.set, { ...args, auth: 'bearer' }, { apiKey: session })
  assert.equal(webhook.header, 'Authorization')
  const headers = { authorization: `Bearer ${borne.secret}` }
  const taken = await deliver(borne, { signature: null, headers })
  assert.equal(taken.status, 200)
  assert.equal((await deliver(borne)).status, 401, 'a signature does not do any more')
  const delivery = await deliveryOf(taken.receipt.delivery.id)
  assert.equal(delivery.headers['authorization'], '[redacted]')
  assert.ok(!JSON.stringify(await inputOf(taken.receipt.runs[0]!.id)).includes(borne.secret))
})

test('our own subscriptions may call it: Standard Webhooks by the same secret', async () => {
  const body = '{"type":"run.completed"}'
  const at = new Date()
  const headers = {
    'webhook-id': 'msg_1',
    'webhook-timestamp': String(Math.floor(at.getTime() / 1000)),
    'webhook-signature': new Standard(hook.secret).sign('msg_1', at, body),
  }
  const first = await deliver(hook, { body, headers, signature: null })
  assert.equal(first.receipt.delivery.outcome, 'triggered')
  const again = await deliver(hook, { body, headers, signature: null })
  assert.equal(again.receipt.delivery.outcome, 'duplicate')
})

test('what does not fit the input is 400, and recorded', async () => {
  const inputSchema = { type: 'object', properties: { n: { type: 'number' } }, required: ['n'] }
  await aWorkflow(c, { slug: 'strict', inputSchema })
  const strict = await aHook(c, session, 'strict')
  const wrong = await deliver(strict, { body: '{"n":"x"}' })
  assert.equal(wrong.status, 400)
  assert.equal(wrong.error.code, 'VALIDATION_FAILED')
  const delivery = await deliveryOf(wrong.error.detail!['delivery'] as string)
  assert.equal(delivery.outcome, 'invalid_input')
  assert.match(delivery.reason!, /input\.n/)
  assert.equal((await deliver(strict, { body: '{"n":' })).status, 400)
  assert.equal((await deliver(strict, { body: '{"n":1}' })).status, 200)
})

test('a body is counted: one byte over the limit is 413, at its head or where it is in chunks', async () => {
  const { bytes: limit } = { bytes: 2_000_000 }
  const full = Buffer.alloc(limit, 0x20)
  const delivered = await deliver(hook, { body: full, headers: { 'content-type': 'text/plain' } })
  assert.equal(delivered.status, 200)
  assert.equal(delivered.receipt.delivery.outcome, 'too_large')
  const payload = await rawCall(c, 'GET', `/v1/deliveries/${delivered.receipt.delivery.id}/payload`)
  assert.equal((await payload.arrayBuffer()).byteLength, limit)
  const over = await deliver(hook, { body: Buffer.alloc(limit + 1) })
  assert.equal(over.status, 413)
  assert.deepEqual(over.error.detail, { bytes: limit + 1, limitBytes: limit })
})

test('an encoded body is 415, an unknown hook is 404 and leaves no row, another method 405', async () => {
  const encoded = await deliver(hook, { headers: { 'content-encoding': 'gzip' } })
  assert.equal(encoded.status, 415)
  const [{ before: count }] = await c.db<[{ before: number }]>`select count(*)::int as before from deliveries`
  const unknown = hook.url.replace(/.{5}$/, '00000')
  assert.equal((await deliver({ ...hook, url: unknown })).status, 404)
  const [{ after: later }] = await c.db<[{ after: number }]>`select count(*)::int as after from deliveries`
  assert.equal(later, count)
  const got = await fetch(hook.url)
  assert.equal(got.status, 405)
  assert.equal(got.headers.get('allow'), 'POST, OPTIONS')
})

test('senders of CloudEvents ask first', async () => {
  const headers = { 'webhook-request-origin': 'eventgrid.azure.net' }
  const answer = await fetch(hook.url, { method: 'OPTIONS', headers })
  assert.equal(answer.status, 200)
  assert.equal(answer.headers.get('webhook-allowed-origin'), 'eventgrid.azure.net')
  assert.equal(answer.headers.get('webhook-allowed-rate'), '*')
})

test('of unverified ones the newest hundred are kept', async () => {
  await aWorkflow(c, { slug: 'flooded' })
  const flooded = await aHook(c, session, 'flooded')
  for (let i = 0; i < 13; i++)
    await Promise.all(Array.from({ length: 10 }, () => deliver(flooded, { signature: null })))
  const last = await deliver(flooded, { body: '{"last":true}', signature: null })
  assert.equal(last.status, 401)
  const rows = await c.db<{ payload: Buffer }[]>`
    select payload from deliveries where source_id = ${flooded.id} order by id desc`
  assert.equal(rows.length, 100)
  assert.equal(rows[0]!.payload.toString(), '{"last":true}')
})

test('no secret is in the database, the log of deliveries or an answer', async () => {
  const tables = await c.db<{ name: string }[]>`
    select table_name as name
    from information_schema.tables
    where table_schema = 'public' and table_type = 'BASE TABLE'`
  for (const { name } of tables) {
    const rows = await c.db`select 1 from ${c.db(name)} t where t::text like ${`%${hook.secret}%`}`
    assert.equal(rows.length, 0, name)
  }
  const answer = await rawCall(c, 'GET', `/v1/orgs/${c.org}/workflows/taker/webhook`)
  assert.ok(!(await answer.text()).includes('whsec_'))
})

test("another org's deliveries look absent", async () => {
  const stranger = await anOrg(c)
  const { receipt } = await deliver(hook, { body: '{"mine":1}' })
  const as = { apiKey: stranger.apiKey }
  await assert.rejects(c.call(ops.deliveries.get, { delivery: receipt.delivery.id }, as), refusal('NOT_FOUND'))
  await assert.rejects(c.call(ops.deliveries.replay, { delivery: receipt.delivery.id }, as), refusal('NOT_FOUND'))
  await assert.rejects(c.call(ops.webhooks.get, { org: c.org, workflow: 'taker' }, as), refusal('NOT_FOUND'))
})

test('a bearer that is no header of ours is not read as a body', async () => {
  const answer = await send(hook.url, { body: '', headers: { 'x-windlass-signature': signature(hook.secret, '') } })
  assert.equal(answer.status, 200)
  assert.equal(await inputOf(answer.receipt.runs[0]!.id), null)
})
