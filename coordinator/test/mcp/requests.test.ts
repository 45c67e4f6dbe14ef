import assert from 'node:assert/strict'
import { request } from 'node:http'
import { after, before, test } from 'node:test'
import { newId } from '@windlass/shared/ids.ts'
import { anOrg, aCoordinatorOfItsOwn, type TestCoordinator } from '../_kit/coordinator.ts'
import { aKey } from '../_kit/credentials.ts'
import { ask, type Extra, headersOf, META, NEW_ERA, OLD_ERA, post } from '../_kit/mcp.ts'

let c: TestCoordinator

const PING = { jsonrpc: '2.0', id: 7, method: 'ping' }
const DISCOVER = { jsonrpc: '2.0', id: 7, method: 'server/discover', params: { _meta: META } }

before(async () => {
  c = await aCoordinatorOfItsOwn({ MCP_HOSTS: 'windlass.test,other.test', MCP_ORIGINS: 'https://inspector.test' })
})
after(() => c.stop())

/** `fetch` sends no Host but that of the address. */
function withHost(host: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const headers = { host, authorization: `Bearer ${c.apiKey}`, 'content-type': 'application/json' }
    const outgoing = request(`${c.url}/mcp/v1`, { method: 'POST', headers }, (response) => {
      response.resume()
      resolve(response.statusCode ?? 0)
    })
    outgoing.on('error', reject).end(JSON.stringify(PING))
  })
}

const bare = (method: string, headers: Extra = {}) => fetch(`${c.url}/mcp/v1`, { method, headers })

test('an initialize that does not say what it must is the fault of whoever sent it', async () => {
  const info = { capabilities: {}, clientInfo: { name: 'test', version: '1' } }
  const missing = [undefined, {}, info, { ...info, protocolVersion: 5 }]
  for (const params of missing) {
    const initialize = { jsonrpc: '2.0', id: 'first', method: 'initialize', params }
    for (const sent of [initialize, [initialize]]) {
      const { status, body } = await post(c, sent)
      assert.deepEqual([status, body.id, body.error.code], [200, 'first', -32_602], JSON.stringify(body))
      assert.match(body.error.message, /protocolVersion/)
    }
  }
  const initialize = { jsonrpc: '2.0', id: 1, method: 'initialize', params: { ...info, protocolVersion: OLD_ERA } }
  assert.equal((await post(c, initialize)).body.result.protocolVersion, OLD_ERA)
})

test('params that do not fit are the fault of whoever sent them, and the field is named', async () => {
  for (const method of ['tools/call', 'resources/read', 'completion/complete']) {
    for (const params of [undefined, {}, { name: 5, uri: 5, ref: 5 }]) {
      const asked = { jsonrpc: '2.0', id: 'first', method, params }
      for (const sent of [asked, [asked]]) {
        const { body } = await post(c, sent)
        const [{ error, id }] = [body].flat()
        assert.deepEqual([id, error.code], ['first', -32_602], JSON.stringify(body))
        assert.match(error.message, /params|name|uri|ref/)
      }
    }
  }
})

test('whoever shows no credential is told where it is written how to get one', async () => {
  const { status, headers, body } = await post({ url: c.url }, PING)
  assert.equal(status, 401)
  assert.equal(body.error.code, 'UNAUTHENTICATED')
  const metadata = `${c.url}/.well-known/oauth-protected-resource/mcp/v1`
  assert.equal(headers.get('www-authenticate'), `Bearer resource_metadata="${metadata}"`)
  const found = (await (await fetch(metadata)).json()) as Record<string, unknown>
  assert.equal(found['resource'], `${c.url}/mcp/v1`)
  assert.deepEqual(found['bearer_methods_supported'], ['header'])
  assert.equal('authorization_servers' in found, false)
})

test('a credential that does not serve is an invalid token', async () => {
  const dead = [
    await aKey(c.db, { orgId: c.orgId, state: 'revoked' }),
    await aKey(c.db, { orgId: c.orgId, state: 'expired' }),
  ]
  for (const apiKey of ['wl_garbage', 'x', ...dead]) {
    const { status, headers } = await post({ url: c.url, apiKey }, PING)
    assert.equal(status, 401, apiKey)
    assert.match(headers.get('www-authenticate') ?? '', /error="invalid_token"$/)
  }
})

test('the header that names an org takes the org of the credential only', async () => {
  const stranger = await anOrg(c)
  for (const name of ['x-windlass-org', 'X-Service-Org']) {
    assert.equal((await post(c, PING, { [name]: 'default' })).status, 200)
    for (const org of [stranger.slug, 'no-such-org', '']) {
      const { status, body } = await post(c, PING, { [name]: org })
      assert.deepEqual([status, body.error.code], [404, 'NOT_FOUND'], `${name}: ${org}`)
    }
  }
})

test('a foreign Host is refused, and the names of ours pass with any port', async () => {
  for (const host of ['127.0.0.1', 'localhost:9', '[::1]:8787', 'windlass.test', 'OTHER.test:443'])
    assert.equal(await withHost(host), 200, host)
  for (const host of [
    'evil.example',
    '127.0.0.1.evil.example',
    'localhost.evil.example:80',
    '10.0.0.1',
    'local host',
    '@',
  ])
    assert.equal(await withHost(host), 403, host)
})

test('a foreign Origin is refused, whatever else is right', async () => {
  for (const origin of [
    'https://evil.example',
    'null',
    'http://127.0.0.1.evil.example',
    'https://inspector.test:1',
    'app://localhost',
    'x',
  ]) {
    const { status, body } = await post(c, PING, { origin })
    assert.equal(status, 403, origin)
    assert.match(body.error.message, /Origin.*WINDLASS_MCP_ORIGINS/)
  }
  for (const origin of ['http://localhost:5173', 'https://inspector.test', c.url]) {
    const { status, headers } = await post(c, PING, { origin })
    assert.deepEqual([status, headers.get('access-control-allow-origin')], [200, origin])
  }
  const refused = await post({ url: c.url }, PING, { origin: 'https://inspector.test' })
  assert.equal(refused.headers.get('access-control-allow-origin'), 'https://inspector.test')
})

test('a page whose origin is ours may ask first what it may send', async () => {
  const preflight = await bare('OPTIONS', { origin: 'https://inspector.test', 'access-control-request-method': 'POST' })
  assert.equal(preflight.status, 204)
  assert.match(preflight.headers.get('access-control-allow-headers') ?? '', /authorization.*mcp-protocol-version/)
  assert.equal((await bare('OPTIONS', { origin: 'https://evil.example' })).status, 403)
})

test('there is no session to read from or to end: only POST is taken', async () => {
  for (const method of ['GET', 'DELETE', 'PUT', 'PATCH', 'HEAD']) {
    const response = await bare(method, { authorization: `Bearer ${c.apiKey}`, accept: 'text/event-stream' })
    assert.equal(response.status, 405, method)
    assert.equal(response.headers.get('allow'), 'POST, OPTIONS')
    assert.ok(response.headers.get('x-request-id'))
  }
})

test('every answer has a request id, the given one where it is harmless', async () => {
  for (const body of [PING, 'nonsense', [], { ...PING, id: undefined }]) {
    const { headers } = await post(c, body, { 'x-request-id': 'mine-1' })
    assert.equal(headers.get('x-request-id'), 'mine-1')
  }
  assert.match((await post(c, PING, { 'x-request-id': 'a b' })).headers.get('x-request-id') ?? '', /^req_/)
})

test('what is no JSON is a parse error that names the place', async () => {
  for (const body of [
    '{"jsonrpc":',
    '',
    '{"a":1}x',
    '[1,]',
    '"\\ud8',
    `${'['.repeat(600)}${']'.repeat(600)}`,
    '{"a":1e999}',
  ]) {
    const { status, body: answer } = await post(c, body)
    assert.deepEqual([status, answer.error?.code, answer.id], [400, -32_700, null], body.slice(0, 40))
  }
  const { body } = await post(c, '{"jsonrpc": "2.0",\n "id": }')
  assert.equal(body.error.data.line, 2)
})

test('what is JSON but no message is an invalid request', async () => {
  const bodies = [
    1,
    null,
    'text',
    {},
    { jsonrpc: '2.0' },
    { jsonrpc: '1.0', id: 1, method: 'ping' },
    { jsonrpc: '2.0', id: {}, method: 'ping' },
    { jsonrpc: '2.0', id: 1, method: 5 },
    [1],
    [PING, DISCOVER],
    JSON.parse('{"__proto__": {"jsonrpc": "2.0", "id": 1, "method": "ping"}}') as object,
  ]
  for (const given of bodies) {
    const { status, body } = await post(c, JSON.stringify(given))
    assert.deepEqual([status, body.error?.code], [400, -32_600], JSON.stringify(given))
  }
})

test('a body that is too large, or of another type, is refused before it is read', async () => {
  const viewer = { url: c.url, apiKey: await aKey(c.db, { orgId: c.orgId, role: 'viewer' }) }
  const padding = { padding: 'x'.repeat(1024 * 1024) }
  const large = JSON.stringify({ ...PING, params: { arguments: padding } })
  const { status, body } = await post(viewer, large)
  assert.deepEqual([status, body.error.code], [413, 'PAYLOAD_TOO_LARGE'])
  assert.equal((await post(c, large)).status, 200, 'who may deploy may send as much as a package has')
  assert.equal((await post(c, PING, { 'content-type': 'text/plain' })).status, 415)
})

test('an old batch is answered as one, and a batch of very many not at all', async () => {
  const { status, body } = await post(c, [
    PING,
    { ...PING, id: 8 },
    { jsonrpc: '2.0', method: 'notifications/initialized' },
  ])
  assert.equal(status, 200)
  assert.deepEqual(body.map((each: { id: number }) => each.id).sort(), [7, 8])
  const many = await post(
    c,
    Array.from({ length: 101 }, (_, id) => ({ ...PING, id })),
  )
  assert.deepEqual([many.status, many.body.error.code], [400, -32_600])
})

test('what needs no answer is taken note of', async () => {
  for (const method of ['notifications/initialized', 'notifications/cancelled', 'notifications/nobody-knows']) {
    const { status, text } = await post(c, { jsonrpc: '2.0', method })
    assert.deepEqual([status, text], [202, ''])
  }
})

test('each revision of the old era is agreed on as it was asked for, any other by the newest of them', async () => {
  const hello = async (protocolVersion: string) => {
    const params = { protocolVersion, capabilities: {}, clientInfo: { name: 'test', version: '1' } }
    return (await post(c, { ...PING, method: 'initialize', params })).body.result
  }
  for (const version of ['2025-03-26', '2025-06-18', OLD_ERA])
    assert.equal((await hello(version)).protocolVersion, version)
  const { protocolVersion, capabilities, instructions } = await hello('1999-01-01')
  assert.equal(protocolVersion, OLD_ERA)
  assert.deepEqual(capabilities, { tools: {}, resources: {}, completions: {} })
  assert.match(instructions, /get_run_output/)
})

test('a revision that nobody knows is refused in either era', async () => {
  const old = await post(c, PING, { 'mcp-protocol-version': '1999-01-01' })
  assert.equal(old.status, 400)
  const params = { _meta: { ...META, 'io.modelcontextprotocol/protocolVersion': '2099-01-01' } }
  const next = await post(
    c,
    { ...DISCOVER, params },
    { ...headersOf('server/discover'), 'mcp-protocol-version': '2099-01-01' },
  )
  assert.deepEqual([next.status, next.body.error.code], [400, -32_022])
  assert.deepEqual(next.body.error.data.supported, [NEW_ERA])
})

test('the new era wants its headers, and that they agree with the body', async () => {
  const all = headersOf('server/discover')
  assert.equal((await post(c, DISCOVER, all)).status, 200)
  const wrong: Extra[] = [{}, { ...all, 'mcp-protocol-version': OLD_ERA }, { ...all, 'mcp-method': 'tools/list' }]
  for (const headers of wrong) {
    const { status, body } = await post(c, DISCOVER, headers)
    assert.deepEqual([status, body.error.code, body.id], [400, -32_020, 7], JSON.stringify(headers))
  }
  const call = { jsonrpc: '2.0', id: 7, method: 'tools/call', params: { name: 'list_runs', _meta: META } }
  const misnamed = await post(c, call, { ...headersOf('tools/call'), 'mcp-name': 'delete_everything' })
  assert.deepEqual([misnamed.status, misnamed.body.error.code], [400, -32_020])
  const noMeta = await post(c, { ...DISCOVER, params: {} }, all)
  assert.deepEqual([noMeta.status, noMeta.body.error.code], [400, -32_602])
})

test('what the server does not offer is not there: no prompts, no logging, no subscriptions', async () => {
  for (const method of ['prompts/list', 'logging/setLevel', 'subscriptions/listen', 'resources/subscribe', 'no/such'])
    for (const era of ['old', 'new'] as const) {
      const { body } = await ask(c, method, {}, era)
      assert.equal(body.error?.code, -32_601, `${method}, ${era}`)
    }
  assert.equal((await ask(c, 'no/such')).status, 404)
})

test('a client that takes JSON only is served, and one that takes no JSON is not', async () => {
  for (const accept of ['application/json', '*/*', 'application/*;q=0.5', 'text/event-stream, application/json'])
    assert.equal((await post(c, PING, { accept })).status, 200, accept)
  assert.equal((await post(c, PING, { accept: 'text/html' })).status, 406)
})

test('an id of a message comes back as it was, also one that is a text', async () => {
  for (const id of [0, -1, 'a', newId('req'), Number.MAX_SAFE_INTEGER]) {
    assert.equal((await post(c, { ...PING, id })).body.id, id)
  }
})
