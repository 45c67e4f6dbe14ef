import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Fault } from '@windlass/shared/errors.ts'
import { newId } from '@windlass/shared/ids.ts'
import { ApiError, createClient } from '../../client/index.ts'
import { KEY, ORG, SESSION, startFake } from '../_kit/fake-service.ts'
import { aRun, aWorkflow } from '../_kit/samples.ts'

test('a call puts its arguments where the row says and gives back the typed answer', async (t) => {
  const run = aRun({ status: 'cancelled' })
  const fake = await startFake(t, {
    'runs.cancel': () => ({ run }),
    'runs.list': () => ({ runs: [run], nextCursor: null }),
  })
  const client = createClient({ url: `${fake.url}/`, apiKey: KEY, org: ORG })
  const answer = await client.runs.cancel({ run: run.id, reason: 'typo' })
  assert.equal(answer.run.status, 'cancelled')
  await client.runs.list({ status: ['queued', 'running'], limit: 2 })
  assert.deepEqual(fake.asked[0]?.args, { run: run.id, reason: 'typo' })
  assert.deepEqual(fake.asked[1]?.args, { org: ORG, status: ['queued', 'running'], deleted: false, limit: 2 })
})

test('the org of the client is meant by every call that names no other', async (t) => {
  const fake = await startFake(t, { 'workflows.list': () => ({ workflows: [aWorkflow()], nextCursor: null }) })
  const client = createClient({ url: fake.url, apiKey: KEY, org: ORG })
  assert.equal((await client.workflows.list()).workflows[0]?.slug, 'hello')
  await assert.rejects(
    client.workflows.list({ org: 'other' }),
    (error) => error instanceof ApiError && error.status === 404,
  )
})

test('a client that is given no org asks once for that of its credential', async (t) => {
  let answers = false
  const org = { id: newId('org'), slug: ORG, name: 'Acme', createdAt: 0 }
  const fake = await startFake(t, {
    'account.get': () => {
      if (answers) return { me: { credential: { kind: 'key', id: 'k', name: 'k', role: 'admin', scopes: [] }, org } }
      throw new Fault('UNAVAILABLE')
    },
    'workflows.list': () => ({ workflows: [], nextCursor: null }),
  })
  const client = createClient({ url: fake.url, apiKey: KEY })
  await assert.rejects(client.workflows.list(), (error) => error instanceof ApiError && error.status === 503)
  answers = true
  await Promise.all([client.workflows.list(), client.workflows.list()])
  assert.deepEqual(
    fake.asked.map(({ id }) => id),
    ['account.get', 'account.get', 'workflows.list', 'workflows.list'],
  )
  assert.equal(fake.asked.at(-1)?.args['org'], ORG)
})

test('the org is asked for all calls together, and none ends that by its own signal or deadline', async (t) => {
  const org = { id: newId('org'), slug: ORG, name: 'Acme', createdAt: 0 }
  const me = { credential: { kind: 'key', id: 'k', name: 'k', role: 'admin', scopes: [] }, org }
  let asked = Promise.withResolvers<() => void>()
  const fake = await startFake(t, {
    'account.get': () => new Promise((resolve) => asked.resolve(() => resolve({ me }))),
    'workflows.list': () => ({ workflows: [], nextCursor: null }),
  })
  const client = createClient({ url: fake.url, apiKey: KEY })
  const leave = new AbortController()
  const aborted = assert.rejects(client.workflows.list({}, { signal: leave.signal }), { message: 'not mine any more' })
  const late = assert.rejects(client.workflows.list({}, { deadlineMs: 1 }), {
    code: 'UNREACHABLE',
    message: /no answer to account\.get within 0\.001 s/,
  })
  const patient = client.workflows.list()
  const answer = await asked.promise
  leave.abort(new Error('not mine any more'))
  await aborted
  await late
  answer()
  assert.deepEqual(await patient, { workflows: [], nextCursor: null })
  // What nobody waits for any more is given up, and asked anew by the next call.
  asked = Promise.withResolvers()
  const other = createClient({ url: fake.url, apiKey: KEY })
  const gone = new AbortController()
  const left = assert.rejects(other.workflows.list({}, { signal: gone.signal }), { message: 'gone' })
  await asked.promise
  gone.abort(new Error('gone'))
  await left
  asked = Promise.withResolvers()
  const next = other.workflows.list()
  ;(await asked.promise)()
  await next
  const ids = fake.asked.map(({ id }) => id)
  assert.deepEqual(ids, ['account.get', 'workflows.list', 'account.get', 'account.get', 'workflows.list'])
})

test('a session serves what no API key may do, and all of it where there is no key', async (t) => {
  const secret = { name: 'A', environment: null, updatedAt: 0, updatedBy: 'ses_1' }
  const fake = await startFake(t, {
    'secrets.set': () => ({ secret }),
    'secrets.list': () => ({ secrets: [], nextCursor: null }),
  })
  const authorizations = () => fake.asked.map(({ headers }) => headers.authorization)
  const both = createClient({ url: fake.url, apiKey: KEY, session: SESSION, org: ORG })
  await both.secrets.set({ name: 'A', value: 'x' })
  await both.secrets.list()
  const alone = createClient({ url: fake.url, session: SESSION, org: ORG })
  await alone.secrets.list()
  assert.deepEqual(authorizations(), [`Bearer ${SESSION}`, `Bearer ${KEY}`, `Bearer ${SESSION}`])
  const keyed = createClient({ url: fake.url, apiKey: KEY, org: ORG })
  await assert.rejects(keyed.secrets.set({ name: 'A', value: 'x' }), { code: 'FORBIDDEN' })
})

test('a refusal carries status, code, message, detail and request id', async (t) => {
  const run = aRun()
  const fake = await startFake(t, {
    'runs.cancel': () => {
      throw new Fault('RUN_ALREADY_FINISHED', { status: 'completed' })
    },
  })
  const client = createClient({ url: fake.url, apiKey: KEY })
  await assert.rejects(client.runs.cancel({ run: run.id }), (error) => {
    assert.ok(error instanceof ApiError)
    const { status, code, detail, requestId } = error
    assert.deepEqual(
      { status, code, detail, requestId },
      { status: 409, code: 'RUN_ALREADY_FINISHED', detail: { status: 'completed' }, requestId: 'req_test' },
    )
    return true
  })
})

test('every operation of a caller is a function of the client, and none of the runner surface is', async () => {
  const client = createClient({ url: 'http://127.0.0.1' })
  assert.deepEqual(Object.keys(client).sort(), [
    'account',
    'audit',
    'connections',
    'deliveries',
    'environments',
    'events',
    'follow',
    'followOrg',
    'inputs',
    'jobs',
    'keys',
    'orgs',
    'pools',
    'retention',
    'runners',
    'runs',
    'schedules',
    'secrets',
    'service',
    'variables',
    'webhooks',
    'workflows',
  ])
  assert.equal(typeof client.workflows.getVersion, 'function')
})

test('the `fetch` that is given is the one that is used', async () => {
  const urls: string[] = []
  const client = createClient({
    url: 'http://nowhere.invalid/base',
    fetch: (url) => {
      urls.push(url instanceof Request ? url.url : String(url))
      return Promise.resolve(Response.json({ status: 'ready' }))
    },
  })
  assert.deepEqual(await client.service.ready(), { status: 'ready' })
  assert.deepEqual(urls, ['http://nowhere.invalid/base/readyz'])
})
