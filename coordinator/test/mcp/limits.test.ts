import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { aCoordinatorOfItsOwn, type TestCoordinator } from '../_kit/coordinator.ts'
import { aKey } from '../_kit/credentials.ts'
import { ask, post, tool } from '../_kit/mcp.ts'

let c: TestCoordinator

const LIMIT = 40
const PING = { jsonrpc: '2.0', id: 1, method: 'ping' }

before(async () => {
  c = await aCoordinatorOfItsOwn({ LIMIT_IDENTITY_PER_MIN: LIMIT, LIMIT_ORG_PER_MIN: 10 * LIMIT })
})
after(() => c.stop())

const aBase = async () => ({ url: c.url, apiKey: await aKey(c.db, { orgId: c.orgId }) })
const rest = ({ url, apiKey }: { url: string; apiKey: string }) =>
  fetch(`${url}/v1/orgs/default/runs`, { headers: { authorization: `Bearer ${apiKey}` } })

test('REST and MCP draw from one bucket, and the refusal reads the same', async () => {
  const base = await aBase()
  let served = 0
  for (let n = 0; n < LIMIT; n++) {
    const status = n % 2 ? (await rest(base)).status : (await ask(base, 'server/discover')).status
    if (status === 200) served++
  }
  assert.equal(served, LIMIT)
  const overMcp = await ask(base, 'server/discover')
  const overRest = await rest(base)
  assert.deepEqual([overMcp.status, overRest.status], [429, 429])
  assert.equal(overMcp.body.error.code, 'RATE_LIMITED')
  assert.match(overMcp.headers.get('retry-after') ?? '', /^\d+$/)
  assert.equal(overMcp.headers.get('ratelimit-policy'), overRest.headers.get('ratelimit-policy'))
})

test('answers tell what is left, those to a page of ours too', async () => {
  const base = await aBase()
  const { headers } = await post(base, PING, { origin: c.url })
  assert.match(headers.get('ratelimit') ?? '', /"identity";r=\d+;t=\d+/)
  assert.equal(headers.get('access-control-allow-origin'), c.url)
})

const pings = (length: number) => Array.from({ length }, (_, id) => ({ ...PING, id }))

test('a batch counts each of its messages', async () => {
  const base = await aBase()
  assert.equal((await post(base, pings(LIMIT - 1))).status, 200)
  assert.equal((await post(base, PING)).status, 200)
  assert.equal((await post(base, PING)).status, 429)
})

test('a batch that no window has room for is refused as such', async () => {
  const base = await aBase()
  const { status, body } = await post(base, pings(LIMIT + 1))
  assert.deepEqual([status, body.error.code], [400, -32_600])
  assert.match(body.error.message, new RegExp(`${LIMIT} messages at most`))
  assert.equal((await post(base, pings(LIMIT - 1))).status, 200)
})

test('a tool call is one request, however often it looks', async () => {
  const base = await aBase()
  for (let n = 0; n < LIMIT; n++) await tool(base, 'list_runs')
  assert.equal((await post(base, PING)).status, 429)
})
