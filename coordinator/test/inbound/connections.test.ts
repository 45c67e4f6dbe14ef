import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { after, before, test } from 'node:test'
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
import { aCoordinatorOfItsOwn, anOrg, refusal, type TestCoordinator } from '../_kit/coordinator.ts'
import { aSession } from '../_kit/credentials.ts'
import { aKeyText, anEnvironment } from '../_kit/environments.ts'
import { send } from '../_kit/inbound.ts'
import { aVersion } from '../_kit/workflow.ts'

let c: TestCoordinator
let session: string

before(async () => {
  c = await aCoordinatorOfItsOwn({
    SECRET_KEY: aKeyText(),
    BASE_URL: 'https://windlass.example.com',
    LIMIT_UNVERIFIED_PER_MIN: 0,
  })
  session = await aSession(c.db, { orgId: c.orgId })
})
after(() => c.stop())

const aConnection = (of: CreateConnection) => connectionOf(c, session, of)
const taking = (connection: string, events: string[], more: object = {}) => aReceiverOf(c, connection, events, more)

const inputOf = async (run: string) => (await c.call(ops.runs.input, { run })).input as Record<string, unknown>
const deliveryOf = async (id: string) => (await c.call(ops.deliveries.get, { delivery: id })).delivery
const outcomesOf = async (id: string) =>
  Object.fromEntries((await deliveryOf(id)).matches.map(({ workflow, outcome }) => [workflow.slug, outcome]))

test('one delivery starts several workflows, each with an outcome of its own', async () => {
  const github = await aConnection({ kind: 'github' })
  await anEnvironment(c, 'staging')
  const started = await taking(github.name, ['push'], { filter: { ref: 'refs/heads/*' }, environment: 'staging' })
  const filtered = await taking(github.name, ['*'], { filter: { ref: { not: 'refs/heads/main' } } })
  const unmatched = await taking(github.name, ['pull_request.*'])
  const disabled = await taking(github.name, ['push'])
  await c.call(ops.workflows.disable, { org: c.org, workflow: disabled.slug })
  const { status, receipt } = await push(github, '{"ref":"refs/heads/main"}')
  assert.equal(status, 200)
  assert.equal(receipt.delivery.outcome, 'triggered')
  assert.deepEqual(
    receipt.runs.map(({ workflow }) => workflow),
    [started.slug],
  )
  assert.deepEqual(await outcomesOf(receipt.delivery.id), {
    [started.slug]: 'triggered',
    [filtered.slug]: 'filtered',
    [unmatched.slug]: 'unmatched',
    [disabled.slug]: 'disabled',
  })
  const run = receipt.runs[0]!.id
  const { run: shown } = await c.call(ops.runs.get, { run })
  assert.deepEqual(shown.trigger, { kind: 'connection', id: github.id })
  assert.equal(shown.environment, 'staging')
  const { receivedAt, headers, ...input } = await inputOf(run)
  assert.deepEqual(
    { ...input, id: typeof input['id'] },
    { connection: github.name, event: 'push', id: 'string', payload: { ref: 'refs/heads/main' } },
  )
  assert.equal(typeof receivedAt, 'number')
  assert.equal((headers as Record<string, string>)['x-github-event'], 'push')
})

test('a redelivery starts what was not started before, once the filter is mended', async () => {
  const github = await aConnection({ kind: 'github' })
  const first = await taking(github.name, ['push'])
  const second = await taking(github.name, ['push'], { filter: { ref: 'never' } })
  const id = { 'x-github-delivery': 'same' }
  const before = await push(github, '{"ref":"x"}', id)
  await aVersion(c, second, { descriptor: { connections: [{ connection: github.name, events: ['push'] }] } })
  const again = await push(github, '{"ref":"x"}', id)
  assert.equal(again.receipt.delivery.outcome, 'triggered')
  const outcomes = await outcomesOf(again.receipt.delivery.id)
  assert.deepEqual(outcomes, { [first.slug]: 'duplicate', [second.slug]: 'triggered' })
  const runs = again.receipt.runs.map((run) => run.id)
  assert.ok(runs.includes(before.receipt.runs[0]!.id), 'with the first run')
})

test('an environment that was made again under its name is another one', async () => {
  await anEnvironment(c, 'remade')
  const github = await aConnection({ kind: 'github', environment: 'remade' })
  await taking(github.name, ['push'])
  const started = await push(github, '{"ref":"x"}')
  assert.equal((await c.call(ops.runs.get, { run: started.receipt.runs[0]!.id })).run.environment, 'remade')
  await c.call(ops.runs.cancel, { run: started.receipt.runs[0]!.id })
  await c.call(ops.environments.delete, { org: c.org, environment: 'remade' }, { apiKey: session })
  await anEnvironment(c, 'remade')
  const { delivery } = (await push(github, '{"ref":"x"}')).receipt
  assert.deepEqual([delivery.outcome, delivery.reason], ['disabled', 'The environment `remade` is gone.'])
  const { connection } = await c.call(ops.connections.get, { connection: github.id })
  assert.equal(connection.environment, 'remade')
})

test('a rollback takes the filters of the version over', async () => {
  const github = await aConnection({ kind: 'github' })
  const workflow = await taking(github.name, ['push'])
  await aVersion(c, workflow, { descriptor: {} })
  assert.equal((await push(github, '{}')).receipt.delivery.outcome, 'unmatched')
  await c.call(ops.workflows.promote, { org: c.org, workflow: workflow.slug, version: 1 })
  assert.equal((await push(github, '{}')).receipt.delivery.outcome, 'triggered')
  await c.call(ops.workflows.delete, { org: c.org, workflow: workflow.slug })
  assert.equal((await push(github, '{}')).receipt.delivery.outcome, 'unmatched')
})

test("GitHub's form, its ping, and what nobody takes are 200", async () => {
  const github = await aConnection({ kind: 'github' })
  await taking(github.name, ['pull_request.opened'])
  const body = `payload=${encodeURIComponent('{"action":"opened","number":7}')}`
  const form = { 'content-type': 'application/x-www-form-urlencoded', 'x-github-event': 'pull_request' }
  const opened = await push(github, body, form)
  assert.equal(opened.receipt.delivery.outcome, 'triggered')
  assert.deepEqual((await inputOf(opened.receipt.runs[0]!.id))['payload'], { action: 'opened', number: 7 })
  const ping = await push(github, '{"zen":"x"}', { 'x-github-event': 'ping' })
  assert.equal(ping.status, 200)
  assert.equal(ping.receipt.delivery.outcome, 'unmatched')
  const invalid = await push(github, '{', { 'x-github-event': 'pull_request' })
  assert.equal(invalid.status, 200, 'a provider is not at fault for what our workflows take')
  assert.equal(invalid.receipt.delivery.outcome, 'invalid_input')
})

test('Stripe, with a secret that it shows later', async () => {
  const stripe = await aConnection({ kind: 'stripe' })
  await taking(stripe.name, ['invoice.*'])
  const shown = 'whsec_that-stripe-has-shown'
  const { connection } = await c.call(
    ops.connections.setSecret,
    { connection: stripe.id, secret: shown, overlapMs: 0 },
    { apiKey: session },
  )
  assert.equal(connection.previousSecretUntil, null)
  const payload = '{"id":"evt_1","type":"invoice.paid"}'
  const client = new Stripe('sk_test_none')
  const post = (secret: string) => {
    const header = client.webhooks.generateTestHeaderString({ payload, secret })
    return send(stripe.url, {
      body: payload,
      headers: { 'content-type': 'application/json', 'stripe-signature': header },
    })
  }
  assert.equal((await post(stripe.secret)).status, 401)
  assert.equal((await post(shown)).receipt.delivery.outcome, 'triggered')
  assert.equal((await post(shown)).receipt.delivery.outcome, 'duplicate')
})

test('Slack: the handshake after the signature, empty answers, no token for the program', async () => {
  const slack = await aConnection({ kind: 'slack' })
  const workflow = await taking(slack.name, ['app_mention', 'command:/deploy'])
  const post = (body: string, type = 'application/json', more: Record<string, string> = {}) => {
    const t = String(Math.floor(Date.now() / 1000))
    const v0 = createHmac('sha256', slack.secret).update(`v0:${t}:${body}`).digest('hex')
    const headers = { 'content-type': type, 'x-slack-signature': `v0=${v0}`, 'x-slack-request-timestamp': t, ...more }
    return send(slack.url, { body, headers })
  }
  const challenge = JSON.stringify({ type: 'url_verification', challenge: 'abc', token: 't' })
  const shaken = await post(challenge)
  assert.deepEqual([shaken.status, shaken.text], [200, '{"challenge":"abc"}'])
  const unsigned = await send(slack.url, { body: challenge, headers: { 'content-type': 'application/json' } })
  assert.equal(unsigned.status, 401)
  const event = JSON.stringify({ type: 'event_callback', token: 't', event_id: 'Ev1', event: { type: 'app_mention' } })
  const mentioned = await post(event, 'application/json', { 'x-slack-retry-num': '2' })
  assert.deepEqual([mentioned.status, mentioned.text], [200, ''])
  const command = await post('token=t&command=%2Fdeploy&text=now', 'application/x-www-form-urlencoded')
  assert.deepEqual([command.status, command.text], [200, ''])
  const { deliveries } = await c.call(ops.connections.deliveries, { connection: slack.id })
  assert.deepEqual(
    deliveries.map(({ outcome, event: name, attempts }) => [outcome, name, attempts]),
    [
      ['triggered', 'command:/deploy', 1],
      ['triggered', 'app_mention', 3],
      ['unverified', null, 1],
      ['handshake', 'url_verification', 1],
    ],
  )
  const run = deliveries[0]!.matches.find(({ workflow: { slug } }) => slug === workflow.slug)!.runId!
  assert.deepEqual((await inputOf(run))['payload'], { command: '/deploy', text: 'now' })
})

test('Standard Webhooks, by svix', async () => {
  const standard = await aConnection({ kind: 'standard-webhooks' })
  await taking(standard.name, ['user.created'])
  const body = '{"type":"user.created"}'
  const at = new Date()
  const headers = {
    'svix-id': 'msg_1',
    'svix-timestamp': String(Math.floor(at.getTime() / 1000)),
    'svix-signature': new Svix(standard.secret).sign('msg_1', at, body),
  }
  const post = () => send(standard.url, { body, headers: { 'content-type': 'application/json', ...headers } })
  assert.equal((await post()).receipt.delivery.outcome, 'triggered')
  assert.equal((await post()).receipt.delivery.outcome, 'duplicate')
})

test('the generic scheme over the address, as it was given to the provider', async () => {
  const hmac = { header: 'X-Square-HmacSha256-Signature', encoding: 'base64', signed: '{url}{body}' } as const
  const square = await aConnection({ kind: 'hmac', hmac, event: { field: 'type' }, dedupe: { field: 'event_id' } })
  await taking(square.name, ['payment.*'])
  const body = '{"type":"payment.updated","event_id":"1"}'
  const url = `https://windlass.example.com/v1/inbound/${square.id}`
  const signature = createHmac('sha256', square.secret)
    .update(url + body)
    .digest('base64')
  const headers = { 'content-type': 'application/json', 'x-square-hmacsha256-signature': signature }
  const { receipt } = await send(square.url, { body, headers })
  assert.equal(receipt.delivery.outcome, 'triggered')
})

test('a token in a header of its own is kept from the log and the program', async () => {
  const gitlab = await aConnection({
    kind: 'bearer',
    bearer: { header: 'X-Gitlab-Token', prefix: '' },
    event: { header: 'X-Gitlab-Event' },
  })
  await taking(gitlab.name, ['Push Hook'])
  const headers = { 'content-type': 'application/json', 'x-gitlab-token': gitlab.secret, 'x-gitlab-event': 'Push Hook' }
  const { receipt } = await send(gitlab.url, { body: '{}', headers })
  assert.equal(receipt.delivery.outcome, 'triggered')
  const delivery = await deliveryOf(receipt.delivery.id)
  assert.equal(delivery.headers['x-gitlab-token'], '[redacted]')
  assert.ok(!JSON.stringify(await inputOf(receipt.runs[0]!.id)).includes(gitlab.secret))
})

test('a secret in a header that the connection does not name is kept from those who read deliveries', async () => {
  const typo = await aConnection({ kind: 'bearer', bearer: { header: 'X-Hook-Pass', prefix: '' } })
  const other = 'a-token-of-another-provider'
  const headers = {
    'content-type': 'application/json',
    'x-hook-phrase': `Pass ${typo.secret}`,
    'x-gitlab-token': other,
  }
  assert.equal((await fetch(typo.url, { method: 'POST', body: '{}', headers })).status, 401)
  const { deliveries } = await c.call(ops.deliveries.list, { org: c.org, connection: typo.id })
  const delivery = await deliveryOf(deliveries[0]!.id)
  assert.equal(delivery.outcome, 'unverified')
  assert.deepEqual(
    [delivery.headers['x-hook-phrase'], delivery.headers['x-gitlab-token']],
    ['[redacted]', '[redacted]'],
  )
})

test('a connection is renamed, paused, tried and deleted', async () => {
  const github = await aConnection({ kind: 'github' })
  const workflow = await taking(github.name, ['push'], { filter: { ref: 'main' } })
  const tried = await c.call(ops.connections.test, { connection: github.id, event: 'push', payload: { ref: 'main' } })
  assert.deepEqual(tried.test.matches, [{ workflow: workflow.slug, outcome: 'triggered', reason: null }])
  const { connection } = await c.call(ops.connections.update, { connection: github.id, enabled: false })
  assert.equal(connection.enabled, false)
  const paused = await push(github, '{"ref":"main"}')
  assert.equal(paused.status, 200)
  assert.equal(paused.receipt.delivery.outcome, 'disabled')
  await c.call(ops.connections.update, { connection: github.id, enabled: true })
  const { delivery } = await c.call(ops.deliveries.replay, { delivery: paused.receipt.delivery.id })
  assert.equal(delivery.outcome, 'triggered')
  assert.equal(delivery.replayOf, paused.receipt.delivery.id)
  await c.call(ops.connections.delete, { connection: github.id }, { apiKey: session })
  assert.equal((await push(github, '{}')).status, 404)
  const { deliveries } = await c.call(ops.deliveries.list, { org: c.org, workflow: workflow.slug })
  assert.equal(deliveries.length, 2, 'its deliveries stay')
  const listed = await c.call(ops.deliveries.list, { org: c.org, connection: github.id })
  assert.equal(listed.deliveries.length, 2, 'and are found by its id')
})

test('what a kind does not take is refused by name, and so is a name that is taken', async () => {
  const create = (args: CreateConnection & { name?: string }, as = session) =>
    c.call(ops.connections.create, { org: c.org, name: `c-${nextNumber()}`, ...args }, { apiKey: as })
  await assert.rejects(create({ kind: 'hmac' }), refusal('VALIDATION_FAILED', 'hmac'))
  await assert.rejects(create({ kind: 'github', bearer: {} }), refusal('VALIDATION_FAILED', 'bearer'))
  await assert.rejects(create({ kind: 'stripe', event: { field: 'x' } }), refusal('VALIDATION_FAILED', 'event'))
  await assert.rejects(
    create({ kind: 'standard-webhooks', secret: 'no-base64-here' }),
    refusal('VALIDATION_FAILED', 'secret'),
  )
  await assert.rejects(create({ kind: 'github', environment: 'none' }), refusal('VALIDATION_FAILED', 'environment'))
  await create({ kind: 'github', name: 'taken' })
  await assert.rejects(create({ kind: 'github', name: 'taken' }), refusal('CONFLICT', 'name'))
  await assert.rejects(create({ kind: 'github' }, c.apiKey), refusal('FORBIDDEN'))
})

test("another org's connection looks absent", async () => {
  const github = await aConnection({ kind: 'github' })
  const stranger = await anOrg(c)
  const as = { apiKey: await aSession(c.db, { orgId: stranger.id }) }
  await assert.rejects(c.call(ops.connections.get, { connection: github.id }, as), refusal('NOT_FOUND'))
  await assert.rejects(c.call(ops.connections.setSecret, { connection: github.id }, as), refusal('NOT_FOUND'))
  await assert.rejects(c.call(ops.connections.delete, { connection: github.id }, as), refusal('NOT_FOUND'))
  const { connections } = await c.call(ops.connections.list, { org: stranger.slug }, as)
  assert.deepEqual(connections, [])
})
