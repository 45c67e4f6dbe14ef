import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { RUN, type StubServer, envelope, startStub } from '../http/stub-server.ts'
import { rawRequest } from '../http/raw-request.ts'

const MIB = 1024 * 1024
let server: StubServer
let input: Record<string, unknown> = {}

const keep = (call: { input: Record<string, unknown> }) => {
  input = call.input
  return { events: [], done: true, runs: [], nextCursor: null, workflows: [] }
}

before(async () => {
  const handlers = {
    'runs.trigger': keep,
    'runs.cancel': keep,
    'runs.list': keep,
    'workflows.getVersion': keep,
    'workflows.create': keep,
  }
  server = await startStub({ handlers, strict: false })
})
after(() => server.close())

const TRIGGER = '/v1/orgs/acme/workflows/hello/runs'
const JSON_TYPE = { 'content-type': 'application/json' }

type Body = NonNullable<RequestInit['body']>

function post(path: string, body: Body, headers: Record<string, string> = JSON_TYPE): Promise<Response> {
  return fetch(server.url + path, {
    method: 'POST',
    body,
    // What `fetch` asks for when the body is a stream.
    duplex: 'half',
    headers: { authorization: 'Bearer owner', ...headers },
  })
}

function get(path: string): Promise<Response> {
  return fetch(server.url + path, { headers: { authorization: 'Bearer owner' } })
}

type Refusal = readonly [status: number, code: string]

async function refused(response: Response, [status, code]: Refusal, message: RegExp, path?: string) {
  assert.equal(response.status, status)
  const error = await envelope(response)
  assert.equal(error.code, code)
  assert.match(error.message, message)
  if (path !== undefined) assert.equal(error.detail?.path, path)
  return error
}

const invalid = (response: Response, message: RegExp, path?: string) =>
  refused(response, [400, 'VALIDATION_FAILED'], message, path)

test('path and body come as one object, with defaults filled in', async () => {
  assert.equal((await post(TRIGGER, '{"input":{"a":[1]},"tags":["x"]}')).status, 201)
  assert.deepEqual(input, { org: 'acme', workflow: 'hello', input: { a: [1] }, tags: ['x'], priority: 0, delayMs: 0 })
})

test('a query is decoded by the types of the schema', async () => {
  assert.equal((await get('/v1/orgs/acme/runs?limit=7&status=queued,running&tag=a+b%26c')).status, 200)
  assert.deepEqual(input, { org: 'acme', limit: 7, status: ['queued', 'running'], tag: 'a b&c', deleted: false })
})

test('a number in the path is decoded', async () => {
  assert.equal((await get('/v1/orgs/acme/workflows/hello/versions/3')).status, 200)
  assert.deepEqual(input, { org: 'acme', workflow: 'hello', version: 3 })
})

test('no body, an empty body and `{}` are the same', async () => {
  for (const body of ['', '{}']) {
    assert.equal((await post(`/v1/runs/${RUN}/cancel`, body)).status, 200)
    assert.deepEqual(input, { run: RUN, reason: '' })
  }
  const bare = await fetch(`${server.url}/v1/runs/${RUN}/cancel`, {
    method: 'POST',
    headers: { authorization: 'Bearer owner' },
  })
  assert.equal(bare.status, 200)
})

test('malformed JSON is told with its place, and without the body', async () => {
  const error = await invalid(await post(TRIGGER, '{\n  "input": secret }'), /line 2, column 12, found "s"/)
  assert.deepEqual([error.detail?.offset, error.detail?.line, error.detail?.column], [13, 2, 12])
  assert.doesNotMatch(error.message, /secret/)
  await invalid(
    await post(TRIGGER, '{"input": 1'),
    /expected `,` or the closing bracket at line 1, column 12, found the end/,
  )
  await invalid(await post(TRIGGER, '[1]'), /must be a JSON object/)
  await invalid(await post(TRIGGER, 'null'), /must be a JSON object/)
  await invalid(await post(TRIGGER, Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x7d])), /UTF-8/)
})

test('an unknown field is named, with the nearest known one', async () => {
  await invalid(await post(TRIGGER, '{"imput":1}'), /`imput` is not known here, did you mean `input`\?/, 'imput')
  await invalid(await get('/v1/orgs/acme/runs?limt=3'), /did you mean `limit`/, 'limt')
  const files = JSON.stringify({
    files: [
      { path: 'a.ts', content: '' },
      { path: 'b.ts', contents: '' },
    ],
  })
  await invalid(await post('/v1/orgs/acme/workflows', files), /./, 'files[1].content')
  const nested = JSON.stringify({ files: [{ path: 'a.ts', content: '', contnet: '' }] })
  await invalid(await post('/v1/orgs/acme/workflows', nested), /did you mean `content`/, 'files[0].contnet')
})

test('a wrong type is named by its path, and every further issue is listed', async () => {
  const error = await invalid(
    await post(TRIGGER, '{"priority":"high","tags":[1],"x":1}'),
    /`tags\[0\]` must be a string, not a number \(and 2 more\)/,
    'tags[0]',
  )
  assert.deepEqual(
    error.detail?.issues?.map((issue) => issue.path),
    ['tags[0]', 'priority', 'x'],
  )
  await invalid(await get('/v1/orgs/acme/runs?limit=lots'), /`limit` must be a number, not a string/, 'limit')
  for (const odd of ['0x10', '1e400', '+7', '.5', '0b1', 'Infinity', '%207'])
    await invalid(await get(`/v1/orgs/acme/runs?limit=${odd}`), /`limit` must be a number, not a string/, 'limit')
  await invalid(await get('/v1/orgs/acme/runs?limit=0'), /`limit` must be >=1/, 'limit')
  await invalid(await get('/v1/orgs/acme/runs?status=queued,sleepy'), /must be one of "queued", "pending"/, 'status[1]')
  await invalid(await post('/v1/orgs/acme/workflows', '{}'), /`files` is missing/, 'files')
})

test('at most twenty issues are listed', async () => {
  const tags = Array.from({ length: 20 }, () => 1)
  const error = await invalid(
    await post(TRIGGER, JSON.stringify({ tags, priority: 'x', version: 'y' })),
    /\(and 21 more\)/,
  )
  assert.equal(error.detail?.issues?.length, 20)
})

test('a field of the path may not come a second time, nor a field of the body in the query', async () => {
  await invalid(await post(TRIGGER, '{"org":"acme"}'), /given by the path/, 'org')
  await invalid(await get('/v1/orgs/acme/runs?org=other'), /given by the path/, 'org')
  await invalid(await post(`${TRIGGER}?priority=1`, '{}'), /belongs in the JSON body/, 'priority')
  await invalid(await get('/v1/orgs/acme/runs?limit=1&limit=2'), /given twice/, 'limit')
})

test('a body on a GET is refused', async () => {
  const lines = ['GET /v1/orgs/acme/runs HTTP/1.1', 'Host: a', 'Authorization: Bearer owner', 'Content-Length: 2']
  const text = await rawRequest(server.port, lines, '{}', /takes no body/)
  assert.match(text, /^HTTP\/1\.1 400/)
})

test('`__proto__` pollutes nothing', async () => {
  await invalid(await post(TRIGGER, '{"__proto__":{"polluted":1}}'), /`__proto__` is not known/)
  await invalid(await get('/v1/orgs/acme/runs?__proto__=x'), /`__proto__` is not known/)
  assert.equal(
    (await post(TRIGGER, '{"input":{"__proto__":{"polluted":1}},"input":{"__proto__":{"polluted":2}}}')).status,
    201,
  )
  assert.equal(({} as Record<string, unknown>).polluted, undefined)
  assert.equal((input.input as Record<string, unknown>).polluted, undefined)
  assert.equal(JSON.stringify(input.input), '{"__proto__":{"polluted":2}}')
})

test('traversal by percent-encoding stays a name that nobody has', async () => {
  const { message, code } = await envelope(await get('/v1/runs/%2e%2e%2f%2e%2e%2fetc'))
  assert.equal(code, 'NOT_FOUND')
  assert.match(message, /must be the id of a run/)
  for (const path of ['/v1/orgs/acme/workflows/..%2f..%2fx', '/v1/runs/%zz', '/v1/orgs/%zz/runs', '/v1/runs/%00'])
    assert.equal((await get(path)).status, 404, path)
  await invalid(await get('/v1/orgs/acme/runs?tag=%ff'), /percent-encoded/, 'tag')
})

test('an org written with escapes is the same org', async () => {
  assert.equal((await get('/v1/orgs/%61cme/runs')).status, 200)
  assert.equal((await get('/v1/orgs/acme%2f/runs')).status, 404)
})

test('only JSON in UTF-8 is taken', async () => {
  for (const type of [
    'text/plain',
    'application/x-www-form-urlencoded',
    'application/json; charset=latin1',
    'application/jsonx',
  ]) {
    await refused(
      await post(TRIGGER, '{}', { 'content-type': type }),
      [415, 'UNSUPPORTED_MEDIA_TYPE'],
      /application\/json/,
    )
  }
  const bytes = new Uint8Array(Buffer.from('{}'))
  await refused(await post(TRIGGER, bytes, {}), [415, 'UNSUPPORTED_MEDIA_TYPE'], /./)
  for (const type of ['application/json; charset=utf-8', 'Application/JSON;charset="UTF-8"']) {
    assert.equal((await post(TRIGGER, '{}', { 'content-type': type })).status, 201)
  }
})

test('a body over the limit is 413 with the limit, whether its length is declared or not', async () => {
  const body = JSON.stringify({ input: 'x'.repeat(2 * MIB) })
  const declared = await refused(await post(TRIGGER, body), [413, 'PAYLOAD_TOO_LARGE'], /bytes at most/)
  assert.deepEqual(declared.detail, { bytes: Buffer.byteLength(body), limitBytes: MIB + 64 * 1024 })
  const streamed = await refused(
    await post(TRIGGER, new Blob([body]).stream()),
    [413, 'PAYLOAD_TOO_LARGE'],
    /bytes at most/,
  )
  assert.ok(Number(streamed.detail?.bytes) > MIB + 64 * 1024)
  const one = await refused(await post(`/v1/runs/${RUN}/cancel`, body), [413, 'PAYLOAD_TOO_LARGE'], /./)
  assert.equal(one.detail?.limitBytes, MIB)
})

test('a chunked body that crosses the limit in its last chunk is 413 with the envelope', async () => {
  const lines = [
    `POST ${TRIGGER} HTTP/1.1`,
    'Host: a',
    'Authorization: Bearer owner',
    'Content-Type: application/json',
    'Transfer-Encoding: chunked',
  ]
  const size = MIB + 64 * 1024
  const body = `${size.toString(16)}\r\n${'x'.repeat(size)}\r\n1\r\nx\r\n0\r\n\r\n`
  assert.match(await rawRequest(server.port, lines, body, /\}\}$/), /^HTTP\/1\.1 413 [^]*PAYLOAD_TOO_LARGE/)
})

test('a chunked body within the limit is read whole', async () => {
  const body = JSON.stringify({ input: 'y'.repeat(900_000) })
  assert.equal((await post(TRIGGER, new Blob([body]).stream())).status, 201)
  assert.equal((input.input as string).length, 900_000)
})

test('a row with a limit of its own takes larger bodies', async () => {
  const files = [{ path: 'a.ts', content: 'z'.repeat(5 * MIB) }]
  assert.equal((await post('/v1/orgs/acme/workflows', JSON.stringify({ files }))).status, 201)
})

test('a body without a credential is not looked at: 401, and the connection stays usable', async () => {
  const headers = { ...JSON_TYPE, authorization: '' }
  for (let turn = 0; turn < 3; turn++) {
    const response = await post(TRIGGER, 'x'.repeat(2 * MIB), headers)
    assert.equal(response.status, 401)
    await response.arrayBuffer()
  }
})

test('nesting that would overflow the stack is refused', async () => {
  const deep = `{"input":${'['.repeat(100_000)}${']'.repeat(100_000)}}`
  await invalid(await post(TRIGGER, deep), /nests deeper than 500 levels/)
  const brackets = JSON.stringify({ input: `"${'['.repeat(5000)}\\` })
  assert.equal((await post(TRIGGER, brackets)).status, 201)
})
