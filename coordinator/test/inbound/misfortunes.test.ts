import assert from 'node:assert/strict'
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { ops } from '@windlass/shared/ops/index.ts'
import { ensureKeyFile } from '../../environments/key-file.ts'
import { retireKeys, rotateKey } from '../../environments/rotate.ts'
import { openSecretKeys } from '../../environments/secret-keys.ts'
import { cleanInbound } from '../../inbound/clean.ts'
import { aCoordinatorOfItsOwn, anOrg, type TestCoordinator } from '../_kit/coordinator.ts'
import { aSession } from '../_kit/credentials.ts'
import { aHook, deliver, type Hook, send, signature } from '../_kit/inbound.ts'
import { until } from '../_kit/until.ts'
import { aWorkflow } from '../_kit/workflow.ts'
import { rawRequest } from '../http/raw-request.ts'

let c: TestCoordinator
let session: string
let folder: string
let keyFile: string
const LIMIT = 100_000

before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'windlass-inbound-'))
  keyFile = join(folder, 'secret.key')
  await ensureKeyFile(keyFile)
  c = await aCoordinatorOfItsOwn({
    SECRET_KEY_FILE: keyFile,
    MAX_DELIVERY: LIMIT,
    LIMIT_DELIVERIES_PER_MIN: 30,
    LIMIT_UNVERIFIED_PER_MIN: 20,
  })
  session = await aSession(c.db, { orgId: c.orgId })
})
after(async () => {
  await c.stop()
  await rm(folder, { recursive: true })
})

async function aReceiver(): Promise<Hook & { slug: string }> {
  const { slug } = await aWorkflow(c)
  return { ...(await aHook(c, session, slug)), slug }
}

const runsOf = (hook: Hook) => c.db<{ id: string }[]>`select id from runs where trigger_id = ${hook.id}`

test('killed between commit and answer: the sender sends again, and there is one run', async () => {
  const hook = await aReceiver()
  const child = fork(join(import.meta.dirname, 'programs/killed-at-commit.ts'), {
    env: {
      ...process.env,
      WINDLASS_DATABASE_URL: c.deps.config.databaseUrl,
      WINDLASS_HOME: folder,
      WINDLASS_SECRET_KEY_FILE: keyFile,
      WINDLASS_PORT: '0',
      WINDLASS_LOG_LEVEL: 'error',
    },
  })
  const [{ port }] = (await once(child, 'message')) as [{ port: number }]
  const ended = once(child, 'exit')
  const body = '{"paid":true}'
  const signed = signature(hook.secret, body)
  const there = { ...hook, url: `http://127.0.0.1:${port}/v1/hooks/${hook.id}` }
  await assert.rejects(deliver(there, { body, signature: signed }), 'no answer')
  assert.deepEqual(await ended, [null, 'SIGKILL'])
  assert.equal((await runsOf(hook)).length, 1, 'it was committed')
  const again = await deliver(hook, { body, signature: signed })
  assert.equal(again.status, 200)
  assert.equal(again.receipt.delivery.outcome, 'duplicate')
  assert.deepEqual(
    again.receipt.runs.map(({ id }) => id),
    (await runsOf(hook)).map(({ id }) => id),
  )
})

test('two coordinators that get the same at once start one run', async () => {
  const hook = await aReceiver()
  const other = await c.another()
  const there = { ...hook, url: `${other.url}/v1/hooks/${hook.id}` }
  const body = '{"n":1}'
  const signed = signature(hook.secret, body)
  const at = Array.from({ length: 20 }, (_, i) => (i % 2 === 0 ? hook : there))
  const answers = await Promise.all(at.map((one) => deliver(one, { body, signature: signed })))
  assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([200]))
  assert.equal((await runsOf(hook)).length, 1)
})

test('a body in chunks is refused at the byte over the limit, and taken up to it', async () => {
  const hook = await aReceiver()
  const post = (bytes: number, isWhole: boolean) => {
    const piece = Buffer.alloc(bytes, 0x61)
    const lines = [
      `POST /v1/hooks/${hook.id} HTTP/1.1`,
      'Host: localhost',
      'Content-Type: text/plain',
      `X-Windlass-Signature: ${signature(hook.secret, piece)}`,
      'Transfer-Encoding: chunked',
      'Connection: close',
    ]
    const chunk = `${bytes.toString(16)}\r\n${piece.toString()}\r\n`
    return rawRequest(Number(new URL(hook.url).port), lines, chunk + (isWhole ? '0\r\n\r\n' : ''))
  }
  assert.match(await post(LIMIT, true), /^HTTP\/1\.1 200 /)
  // Its end never comes: the answer does not wait for it.
  assert.match(await post(LIMIT + 1, false), /^HTTP\/1\.1 413 /)
})

test('verified ones are limited by their source; the first too many is recorded', async () => {
  const [hook, other] = [await aReceiver(), await aReceiver()]
  const answers = []
  const filler = 'x'.repeat(20_000)
  for (let n = 0; n < 35; n++) answers.push(await deliver(hook, { body: JSON.stringify({ n, filler }) }))
  const late = answers.filter(({ status }) => status === 429)
  assert.ok(late.length >= 4, String(late.length))
  assert.ok(Number(late[0]!.headers.get('retry-after')) > 0)
  assert.equal((await deliver(other)).status, 200, 'others are not')
  const { deliveries } = await c.call(ops.deliveries.list, { org: c.org, outcome: 'rate_limited' })
  assert.equal(deliveries.length, 1)
  const { delivery } = await c.call(ops.deliveries.replay, { delivery: deliveries[0]!.id })
  assert.equal(delivery.outcome, 'triggered', 'it was kept whole')
})

test('unverified ones are limited by their address, and silence nobody', async () => {
  const hook = await aReceiver()
  const statuses = []
  for (let n = 0; n < 30; n++) statuses.push((await deliver(hook, { signature: null })).status)
  assert.ok(statuses.includes(429))
  assert.equal((await deliver(hook, { body: '{"verified":true}' })).status, 200)
})

test('a rotation of the key covers the secrets of webhooks, those of before too', async () => {
  const hook = await aReceiver()
  const { secret } = await c.call(ops.webhooks.rotate, { org: c.org, workflow: hook.slug }, { apiKey: session })
  const { log } = c.deps
  const secretKeys = openSecretKeys({ secretKey: undefined, secretKeyFile: keyFile }, log)
  const by = { kind: 'operator', id: 'ada@host', name: 'ada@host', via: 'admin', requestId: null } as const
  const rotated = await rotateKey({ db: c.db, secretKeys, keyFile }, by)
  assert.ok(rotated.resealed >= 2, String(rotated.resealed))
  assert.deepEqual(rotated.broken, [])
  await retireKeys({ db: c.db }, by, keyFile)
  assert.equal((await deliver(hook, { body: '{"n":1}' })).status, 200, 'the secret of before')
  assert.equal((await deliver({ ...hook, secret }, { body: '{"n":2}' })).status, 200)
})

test('without its key a coordinator answers 503, so that the sender comes again', async () => {
  const hook = await aReceiver()
  const other = await c.another({ SECRET_KEY_FILE: join(folder, 'missing.key') })
  const answer = await deliver({ ...hook, url: `${other.url}/v1/hooks/${hook.id}` })
  assert.equal(answer.status, 503)
  assert.equal(answer.error.code, 'SECRETS_UNAVAILABLE')
})

test('a workflow that is deleted and restored has the same webhook, address and secret', async () => {
  const hook = await aReceiver()
  await c.call(ops.workflows.delete, { org: c.org, workflow: hook.slug })
  assert.equal((await deliver(hook, { body: '{"n":1}' })).status, 404)
  await c.call(ops.workflows.restore, { org: c.org, workflow: hook.slug })
  assert.equal((await deliver(hook, { body: '{"n":2}' })).status, 200)
})

test('while one org holds its throttle, the deliveries of others go on', async () => {
  const { slug } = await aWorkflow(c, { descriptor: { throttle: { limit: 1000, per: '1h' } } })
  const throttled = await aHook(c, session, slug)
  const other = await anOrg(c)
  const theirs = await aWorkflow({ deps: c.deps, orgId: other.id })
  const owner = await aSession(c.db, { orgId: other.id })
  const free = await aHook({ ...c, org: other.slug }, owner, theirs.slug)
  assert.equal((await deliver(throttled, { body: '{"n":0}' })).status, 200)
  const held = Promise.withResolvers<void>()
  const isHeld = Promise.withResolvers<void>()
  const holding = c.db.begin(async (tx) => {
    await tx`select from throttles for update`
    isHeld.resolve()
    await held.promise
  })
  await isHeld.promise
  const waiting = Array.from({ length: 6 }, (_, n) => deliver(throttled, { body: `{"n":${n + 1}}` }))
  try {
    await until('a delivery waits for the throttle', async () => {
      const rows = await c.db`
        select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`
      return rows.length > 0
    })
    assert.equal((await deliver(free)).status, 200)
  } finally {
    held.resolve()
  }
  await holding
  assert.deepEqual(new Set((await Promise.all(waiting)).map(({ status }) => status)), new Set([200]))
})

test('what is kept for a time goes when it is over', async () => {
  const hook = await aReceiver()
  const body = '{"n":1}'
  const first = await deliver(hook, { body })
  await c.db`update delivery_keys set expires_at = now()`
  await c.db`
    insert into deliveries (id, org_id, source_id, source_name, outcome, method, query, headers, payload, payload_bytes,
                            received_at)
    values ('dlv_old', ${c.orgId}, ${hook.id}, 'x', 'unverified', 'POST', '', '{}', '', 0, now() - interval '8 days')`
  await cleanInbound(c.deps)
  const [{ keys, old }] = await c.db<[{ keys: number; old: number }]>`
    select (select count(*)::int from delivery_keys) as keys,
           (select count(*)::int from deliveries where id = 'dlv_old') as old`
  assert.deepEqual([keys, old], [0, 0])
  assert.equal(first.receipt.delivery.outcome, 'triggered')
})

test('deliveries of a workflow that debounces are merged into its run, and replays are not', async () => {
  const { slug } = await aWorkflow(c, { descriptor: { debounce: { wait: '1h' } } })
  const hook = await aHook(c, session, slug)
  const first = await deliver(hook, { body: '{"n":1}' })
  const body = '{"n":2}'
  const signed = signature(hook.secret, body)
  const second = await deliver(hook, { body, signature: signed })
  assert.deepEqual([second.status, second.receipt.delivery.outcome], [200, 'triggered'])
  assert.deepEqual(second.receipt.runs, first.receipt.runs)
  const run = first.receipt.runs[0]!.id
  assert.deepEqual((await c.call(ops.runs.input, { run })).input, { n: 2 })
  const again = await deliver(hook, { body, signature: signed })
  assert.deepEqual([again.receipt.delivery.outcome, again.receipt.runs[0]!.id], ['duplicate', run])
  const { delivery } = await c.call(ops.deliveries.replay, { delivery: second.receipt.delivery.id })
  assert.notEqual(delivery.matches[0]!.runId, run)
})

test('an upgrade gives workflows of before their webhook, and their filters', async () => {
  const connections = [
    { connection: 'a', events: ['push', 'x.*'], filter: { ref: ['m', 'n'], bot: { not: true } }, environment: 'e' },
    { connection: 'b', events: ['*'] },
  ]
  const { id } = await aWorkflow(c, { descriptor: { connections } })
  const wanted = () => c.db`
    select n, connection, events, filter, environment from workflow_connections where workflow_id = ${id} order by n`
  const before = [...(await wanted())]
  await c.db`delete from workflow_connections`
  await c.db`delete from webhooks`
  const file = join(import.meta.dirname, '../../db/migrations/0011-inbound.sql')
  const statements = (await readFile(file, 'utf8')).split(/;\n/).map((text) => text.replace(/^\s*(--.*\n\s*)*/, ''))
  for (const text of statements.filter((one) => one.startsWith('insert into'))) await c.db.unsafe(text)
  assert.deepEqual([...(await wanted())], before)
  const [{ webhook }] = await c.db<[{ webhook: string }]>`select id as webhook from webhooks where workflow_id = ${id}`
  assert.match(webhook, /^hook_[0-9a-z]{26}$/)
  const [{ lacking }] = await c.db<[{ lacking: number }]>`
    select count(*)::int as lacking
    from workflows w
    where not exists (select from webhooks h where h.workflow_id = w.id)`
  assert.equal(lacking, 0)
})

test('what no text of the database holds is taken all the same', async () => {
  const { connection, secret } = await c.call(
    ops.connections.create,
    { org: c.org, name: 'odd', kind: 'bearer', event: { field: 'type' } },
    { apiKey: session },
  )
  const inputSchema = { type: 'object', properties: { payload: { additionalProperties: { type: 'number' } } } }
  await aWorkflow(c, { descriptor: { connections: [{ connection: 'odd', events: ['*'] }] }, inputSchema })
  const headers = { authorization: `Bearer ${secret}`, 'content-type': 'application/json' }
  const body = '{"type":"a\\u0000b\\ud800","\\u0000":"x"}'
  const { status, receipt } = await send(connection.url, { body, headers })
  assert.equal(status, 200)
  assert.equal(receipt.delivery.outcome, 'invalid_input')
  const { delivery } = await c.call(ops.deliveries.get, { delivery: receipt.delivery.id })
  assert.equal(delivery.event, 'a\ufffdb\ufffd')
})
