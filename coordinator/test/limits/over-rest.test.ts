import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { readConfig } from '../../config.ts'
import { mintApiKey } from '../_kit/credentials.ts'
import { anAgent } from '../_kit/agent.ts'
import { aCoordinatorOfItsOwn, aRun, rawCall, type TestCoordinator } from '../_kit/coordinator.ts'
import { aWorkflow } from '../_kit/workflow.ts'
import { readQuotas } from './some-limits.ts'

const LIMIT = 40
let c: TestCoordinator
let run = ''

before(async () => {
  c = await aCoordinatorOfItsOwn({ LIMIT_IDENTITY_PER_MIN: LIMIT, LIMIT_ORG_PER_MIN: 10_000 })
  await aWorkflow(c, { slug: 'any' })
  run = (await aRun(c, { workflow: 'any' })).id
})
after(() => c.stop())

async function aKey(role: 'owner' | 'viewer' = 'owner'): Promise<{ url: string; apiKey: string }> {
  const { key } = await mintApiKey(c.db, { orgId: c.orgId, name: 'limited', role })
  return { url: c.url, apiKey: key }
}

function remaining(response: Response): number {
  return readQuotas(response.headers.get('ratelimit') ?? undefined).identity?.amount ?? -1
}

test('every answer to a caller says where the caller stands', async () => {
  const viewer = await aKey('viewer')
  const first = await rawCall(viewer, 'GET', `/v1/runs/${run}`)
  assert.equal(first.status, 200)
  assert.deepEqual(readQuotas(first.headers.get('ratelimit-policy') ?? undefined), {
    identity: { amount: LIMIT, seconds: 60 },
    org: { amount: 10_000, seconds: 60 },
  })
  assert.equal(remaining(first), LIMIT - 1)
  const headers = { authorization: `Bearer ${viewer.apiKey}`, 'if-none-match': first.headers.get('etag') ?? '' }
  const others: [number, Promise<Response>][] = [
    [304, fetch(`${c.url}/v1/runs/${run}`, { headers })],
    [200, fetch(`${c.url}/v1/runs/${run}`, { method: 'HEAD', headers: { authorization: headers.authorization } })],
    [403, rawCall(viewer, 'POST', `/v1/runs/${run}/cancel`)],
    [404, rawCall(viewer, 'GET', '/v1/orgs/strangers/runs')],
    [400, rawCall(viewer, 'GET', `/v1/orgs/${c.org}/runs?limit=0`)],
  ]
  const left = new Set<number>()
  for (const [status, answer] of others) {
    const response = await answer
    assert.equal(response.status, status)
    left.add(remaining(response))
    await response.arrayBuffer()
  }
  assert.deepEqual(
    [...left].sort((a, b) => a - b),
    [34, 35, 36, 37, 38],
  )
  const stream = await rawCall(viewer, 'GET', `/v1/runs/${run}/events/stream`)
  assert.equal(remaining(stream), LIMIT - 7)
  await stream.body?.cancel()
})

test('one request too many is 429 in the envelope, with `Retry-After`', async () => {
  const key = await aKey()
  for (let i = 0; i < LIMIT; i++) assert.equal((await rawCall(key, 'GET', `/v1/runs/${run}`)).status, 200)
  const refused = await rawCall(key, 'GET', `/v1/runs/${run}`)
  assert.equal(refused.status, 429)
  const { error } = (await refused.json()) as { error: { code: string; detail: Record<string, unknown> } }
  assert.equal(error.code, 'RATE_LIMITED')
  assert.equal(error.detail['scope'], 'identity')
  const seconds = Number(refused.headers.get('retry-after'))
  assert.ok(Number.isInteger(seconds) && seconds >= 1 && seconds <= 60)
  assert.equal(remaining(refused), 0)
  assert.equal((await rawCall(await aKey(), 'GET', `/v1/runs/${run}`)).status, 200)
})

test('what is refused for its role is counted too', async () => {
  const viewer = await aKey('viewer')
  const statuses = []
  for (let i = 0; i <= LIMIT; i++) statuses.push((await rawCall(viewer, 'POST', `/v1/runs/${run}/cancel`)).status)
  assert.deepEqual(statuses, [...Array.from({ length: LIMIT }, () => 403), 429])
})

test('agents are not counted, and strangers have no bucket', async () => {
  const buckets = () => c.db`select key from rate_limits where key like 'i:%'`
  const before = await buckets()
  const agent = await anAgent(c)
  for (let i = 0; i < 5; i++) await agent.poll(1, 0)
  // Joining the pool takes a caller's token; what follows is the agent's own.
  const joined = await buckets()
  for (let i = 0; i < 2 * LIMIT; i++) assert.equal((await rawCall({ url: c.url }, 'GET', '/healthz')).status, 200)
  for (let i = 0; i < 2 * LIMIT; i++)
    assert.equal((await rawCall({ url: c.url, apiKey: 'wl_x' }, 'GET', '/v1/me')).status, 401)
  assert.deepEqual(await buckets(), joined)
  assert.ok(joined.length - before.length <= 1)
  agent.close()
})

test('the settings are a whole number a minute, and the defaults those of the contract', () => {
  const config = readConfig({ WINDLASS_DATABASE_URL: 'postgres://x' })
  assert.deepEqual([config.limitIdentityPerMin, config.limitOrgPerMin], [600, 6000])
  for (const value of ['-1', '1.5', 'many'])
    assert.throws(
      () => readConfig({ WINDLASS_DATABASE_URL: 'postgres://x', WINDLASS_LIMIT_ORG_PER_MIN: value }),
      /WINDLASS_LIMIT_ORG_PER_MIN/,
    )
})
