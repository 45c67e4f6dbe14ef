import assert from 'node:assert/strict'
import { once } from 'node:events'
import { Agent, type IncomingMessage, request } from 'node:http'
import { connect } from 'node:net'
import { after, afterEach, test } from 'node:test'
import { Fault } from '@windlass/shared/errors.ts'
import { within } from '@windlass/shared/time.ts'
import { BytesAnswer, JsonText } from '../../api/call.ts'
import { rawRequest } from './raw-request.ts'
import { RUN, type StubOptions, type StubServer, envelope, startStub } from './stub-server.ts'

const AUTH = { authorization: 'Bearer owner' }
let server: StubServer | undefined

afterEach(async () => {
  await server?.close()
  server = undefined
})
// A stop that leaves something behind would keep this process alive.
after(() => assert.equal(server, undefined))

async function serve(handlers: StubOptions['handlers'], options: StubOptions = {}): Promise<StubServer> {
  return (server = await startStub({ handlers, ...options }))
}

const INPUT = `/v1/runs/${RUN}/input`

test('a GET carries an ETag, and 304 without a body answers whoever has it', async () => {
  let value = 1
  const { url } = await serve({ 'runs.input': () => ({ input: value }) })
  const first = await fetch(url + INPUT, { headers: AUTH })
  const etag = first.headers.get('etag') ?? ''
  assert.match(etag, /^"[\w-]{27}"$/)
  assert.equal(first.headers.get('cache-control'), 'private, no-cache')
  assert.equal(first.headers.get('content-type'), 'application/json; charset=utf-8')
  for (const known of [etag, `W/${etag}`, `"other", ${etag}`, '*']) {
    const again = await fetch(url + INPUT, { headers: { ...AUTH, 'if-none-match': known } })
    assert.equal(again.status, 304, known)
    assert.equal(again.headers.get('etag'), etag)
    assert.equal(again.headers.get('content-length'), null)
    assert.equal(await again.text(), '')
  }
  value = 2
  const changed = await fetch(url + INPUT, { headers: { ...AUTH, 'if-none-match': etag } })
  assert.equal(changed.status, 200)
  assert.notEqual(changed.headers.get('etag'), etag)
})

test('a POST carries no ETag and is not stored', async () => {
  const { url } = await serve({ 'runs.cancel': () => new JsonText('{"run":{}}') }, { strict: false })
  const response = await fetch(`${url}/v1/runs/${RUN}/cancel`, {
    method: 'POST',
    headers: { ...AUTH, 'if-none-match': '*' },
  })
  assert.equal(response.status, 200)
  assert.equal(response.headers.get('etag'), null)
  assert.equal(response.headers.get('cache-control'), 'no-store')
  assert.equal(response.headers.get('x-content-type-options'), 'nosniff')
})

test('HEAD answers as GET does, without the body', async () => {
  const { url } = await serve({
    'runs.input': () => ({ input: 'abc' }),
    'runnerSurface.bundle': () => new BytesAnswer(Buffer.alloc(1000), 'application/gzip'),
  })
  const get = await fetch(url + INPUT, { headers: AUTH })
  const head = await fetch(url + INPUT, { method: 'HEAD', headers: AUTH })
  assert.equal(head.status, 200)
  assert.equal(head.headers.get('etag'), get.headers.get('etag'))
  assert.equal(head.headers.get('content-length'), String((await get.text()).length))
  assert.equal(await head.text(), '')
  const bundle = await fetch(`${url}/runner/v1/bundles/${'a'.repeat(64)}`, {
    method: 'HEAD',
    headers: { authorization: 'Bearer runner' },
  })
  assert.equal(bundle.headers.get('content-length'), '1000')
})

test('a HEAD leaves its connection to the next request or says it does not; it always tells the length', async () => {
  const { port } = await serve({
    'runs.input': () => ({ input: 'abc' }),
    'runnerSurface.bundle': () => new BytesAnswer(Buffer.alloc(1000), 'application/gzip'),
  })
  const asked = [
    [INPUT, 'owner', String('{"input":"abc"}'.length)],
    [`/runner/v1/bundles/${'a'.repeat(64)}`, 'runner', '1000'],
  ] as const
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  try {
    for (let n = 0; n < 400; n++) {
      const [path, who, length] = asked[n % 2]!
      const headers = { authorization: `Bearer ${who}` }
      const [head] = (await once(request({ port, path, method: 'HEAD', agent, headers }).end(), 'response')) as [
        IncomingMessage,
      ]
      head.resume()
      await once(head, 'end')
      assert.deepEqual([head.statusCode, head.headers['content-length']], [200, length])
    }
  } finally {
    agent.destroy()
  }
})

test('bytes arrive whole, with their type', async () => {
  const bytes = Buffer.alloc(20 * 1024 * 1024, 'windlass')
  const { url } = await serve({ 'runnerSurface.bundle': () => new BytesAnswer(bytes, 'application/gzip') })
  const response = await fetch(`${url}/runner/v1/bundles/${'a'.repeat(64)}`, {
    headers: { authorization: 'Bearer runner' },
  })
  assert.equal(response.headers.get('content-type'), 'application/gzip')
  assert.equal(response.headers.get('content-length'), String(bytes.length))
  assert.ok(Buffer.from(await response.arrayBuffer()).equals(bytes))
})

test('a harmless X-Request-Id comes back, any other is replaced', async () => {
  const { url } = await serve({ 'runs.input': () => ({ input: 1 }) })
  const idFor = async (given: string) =>
    (await fetch(url + INPUT, { headers: { ...AUTH, 'x-request-id': given } })).headers.get('x-request-id')
  assert.equal(await idFor('trace-1.a_B'), 'trace-1.a_B')
  for (const bad of ['a b', 'x'.repeat(129), '<script>', 'ü'])
    assert.match((await idFor(bad)) ?? '', /^req_[0-9a-z]{26}$/)
})

test('no header value can break a line', async () => {
  const { port, url } = await serve({
    'runs.input': () => ({ input: 1 }),
    'runnerSurface.bundle': () => new BytesAnswer(Buffer.from('x'), 'text/plain\r\nEvil: 1'),
  })
  const lines = [`GET ${INPUT} HTTP/1.1`, 'Host: a', 'Authorization: Bearer owner', 'X-Request-Id: a%0d%0aEvil: 1']
  assert.doesNotMatch(await rawRequest(port, lines), /^evil/im)
  const bundle = await fetch(`${url}/runner/v1/bundles/${'a'.repeat(64)}`, {
    headers: { authorization: 'Bearer runner' },
  })
  assert.deepEqual([bundle.status, bundle.headers.get('evil')], [500, null])
})

test('a bug is answered 500 with the request id alone, and logged once with its stack', async () => {
  const { url, logged } = await serve({
    'runs.input': () => {
      throw new TypeError('secret of the house')
    },
  })
  const response = await fetch(url + INPUT, { headers: AUTH })
  assert.equal(response.status, 500)
  const error = await envelope(response)
  const requestId = response.headers.get('x-request-id')
  assert.deepEqual([error.code, error.detail], ['INTERNAL', { requestId }])
  assert.doesNotMatch(error.message, /secret/)
  assert.equal(logged.length, 1)
  assert.deepEqual([logged[0]?.name, logged[0]?.op, logged[0]?.requestId], ['http.failed', 'runs.input', requestId])
  assert.match(String(logged[0]?.error), /secret of the house[^]*at /)
})

test('a database that is away is 503 with Retry-After', async () => {
  const { url } = await serve({
    'runs.input': () => {
      throw Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED', syscall: 'connect' })
    },
  })
  const response = await fetch(url + INPUT, { headers: AUTH })
  assert.deepEqual([response.status, response.headers.get('retry-after')], [503, '1'])
  assert.equal((await envelope(response)).code, 'UNAVAILABLE')
})

test('text that the database cannot hold is the fault of the request', async () => {
  const { url } = await serve({
    'runs.cancel': () => {
      throw Object.assign(new Error('invalid byte sequence'), { code: '22021' })
    },
  })
  const response = await fetch(`${url}/v1/runs/${RUN}/cancel`, { method: 'POST', headers: AUTH })
  assert.equal(response.status, 400)
  assert.match((await envelope(response)).message, /U\+0000/)
})

test('in tests a fault that the row does not declare, and an answer that it does not promise, are 500', async () => {
  const handlers = {
    'runs.input': () => {
      throw new Fault('WORKFLOW_EXISTS')
    },
    'workflows.list': () => ({ workflows: [{ id: 'no id' }], nextCursor: null }),
  }
  const strict = await serve(handlers)
  assert.equal((await fetch(strict.url + INPUT, { headers: AUTH })).status, 500)
  assert.equal((await fetch(`${strict.url}/v1/orgs/acme/workflows`, { headers: AUTH })).status, 500)
  assert.match(String(strict.logged[0]?.error), /runs\.input answered WORKFLOW_EXISTS/)
  await strict.close()
  const lax = await serve(handlers, { strict: false })
  assert.equal((await fetch(lax.url + INPUT, { headers: AUTH })).status, 409)
  assert.equal((await fetch(`${lax.url}/v1/orgs/acme/workflows`, { headers: AUTH })).status, 200)
})

test('a declared fault keeps its code, message and detail', async () => {
  const { url } = await serve({
    'runs.output': () => {
      throw new Fault('RUN_NOT_FINISHED', { status: 'running' }, 'Wait for it.')
    },
  })
  const response = await fetch(`${url}/v1/runs/${RUN}/output`, { headers: AUTH })
  assert.equal(response.status, 409)
  assert.deepEqual(await envelope(response), {
    code: 'RUN_NOT_FINISHED',
    message: 'Wait for it.',
    detail: { status: 'running' },
  })
})

test('a client that goes away aborts the wait of its handler', async () => {
  const reached = Promise.withResolvers<void>()
  const aborted = Promise.withResolvers<void>()
  const { port, logged } = await serve({
    'runs.input': async ({ gone }) => {
      reached.resolve()
      await once(gone, 'abort')
      aborted.resolve()
      return { input: 1 }
    },
  })
  const socket = connect(port, '127.0.0.1')
  socket.write(`GET ${INPUT} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer owner\r\n\r\n`)
  await within(60_000, reached.promise, 'the handler was not reached')
  socket.destroy()
  await within(60_000, aborted.promise, 'the handler was not told')
  assert.deepEqual(logged, [])
})

test('a client that goes away in the middle of its body is no error', async () => {
  const { port, url, logged } = await serve({
    'runs.cancel': () => new JsonText('{}'),
    'runs.input': () => ({ input: 1 }),
  })
  for (const framing of ['Content-Length: 1000', 'Transfer-Encoding: chunked']) {
    const socket = connect(port, '127.0.0.1')
    const lines = [
      `POST /v1/runs/${RUN}/cancel HTTP/1.1`,
      'Host: a',
      'Authorization: Bearer owner',
      'Content-Type: application/json',
      framing,
    ]
    socket.write(`${lines.join('\r\n')}\r\n\r\n5\r\n{"rea`)
    await once(socket, 'connect')
    // The server answers another request only after it has read this one.
    await fetch(url + INPUT, { headers: AUTH })
    socket.destroy()
    await once(socket, 'close')
    await fetch(url + INPUT, { headers: AUTH })
  }
  assert.deepEqual(logged, [])
})

test('a stop lets what is in flight finish, tells whoever waits, and then listens no more', async () => {
  const reached = Promise.withResolvers<void>()
  const running = await serve({
    'runs.input': async ({ gone }) => {
      reached.resolve()
      await once(gone, 'abort')
      return { input: 'as things stand' }
    },
  })
  const waiting = fetch(running.url + INPUT, { headers: AUTH })
  await reached.promise
  await within(60_000, running.close(), 'the server did not stop')
  assert.deepEqual(await (await waiting).json(), { input: 'as things stand' })
  await assert.rejects(fetch(running.url + INPUT))
})

test('a port that is taken says what to do', async () => {
  const { port } = await serve({})
  await assert.rejects(startStub({ port }), /Cannot listen on 127\.0\.0\.1:\d+\..*WINDLASS_PORT/)
})

test('a refused body that does not come to an end is cut off', async () => {
  const { port } = await serve({}, { stallMs: 100 })
  const socket = connect(port, '127.0.0.1')
  socket.on('error', () => {})
  const lines = [`POST /v1/runs/${RUN}/cancel HTTP/1.1`, 'Host: a', 'Content-Length: 1000000000']
  socket.write(`${lines.join('\r\n')}\r\n\r\nthe first of many`)
  socket.resume()
  await within(60_000, once(socket, 'close'), 'the connection stays open')
})
