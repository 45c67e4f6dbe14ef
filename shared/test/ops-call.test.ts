import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { type AddressInfo, createServer as createNetServer } from 'node:net'
import { after, before, beforeEach, test } from 'node:test'
import type { ApiError } from '../ops/api-error.ts'
import { callOp, openOp } from '../ops/call.ts'
import { ops } from '../ops/index.ts'
import { FAULTS } from '../errors.ts'
import { FOREIGN } from './_kit/foreign.ts'

const RUN = `run_${'0'.repeat(26)}`

interface Seen {
  method: string | undefined
  url: string | undefined
  headers: IncomingMessage['headers']
  body: string
}

let seen: Seen[] = []
let answer: (request: IncomingMessage, response: ServerResponse) => void
let server: Server
let url: string

before(async () => {
  server = createServer((request, response) => {
    let body = ''
    request.on('data', (chunk: Buffer) => (body += chunk.toString()))
    request.on('end', () => {
      seen.push({ method: request.method, url: request.url, headers: request.headers, body })
      answer(request, response)
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
})
beforeEach(() => {
  seen = []
})
after(() => {
  server.closeAllConnections()
  server.close()
})

function answering(status: number, body: string, headers: Record<string, string> = {}) {
  answer = (_request, response) => void response.writeHead(status, headers).end(body)
}

function apiError(check: Partial<ApiError>) {
  return (error: unknown) => {
    assert.equal((error as Error).name, 'ApiError')
    for (const [key, value] of Object.entries(check))
      assert.deepEqual((error as ApiError)[key as keyof ApiError], value, key)
    return true
  }
}

test('path, query and key go where they belong', async () => {
  answering(200, '{"runs":[],"nextCursor":null}')
  const page = await callOp({ url: `${url}/prefix/`, apiKey: 'wl_x' }, ops.runs.list, {
    org: 'a b',
    status: ['queued', 'running'],
    limit: 5,
  })
  assert.deepEqual(page, { runs: [], nextCursor: null })
  assert.equal(seen[0]?.url, '/prefix/v1/orgs/a%20b/runs?status=queued%2Crunning&limit=5')
  assert.equal(seen[0]?.headers.authorization, 'Bearer wl_x')
})

test('the rest of the fields of a POST are its body', async () => {
  answering(201, '{"run":{}}')
  await callOp({ url, headers: { 'x-a': '1' } }, ops.runs.trigger, { org: 'acme', workflow: 'hello', input: [1] })
  assert.equal(seen[0]?.method, 'POST')
  assert.equal(seen[0]?.body, '{"input":[1]}')
  assert.equal(seen[0]?.headers['content-type'], 'application/json')
  assert.equal(seen[0]?.headers['x-a'], '1')
})

test('a refusal becomes an error with all that the envelope says', async () => {
  answering(400, '{"error":{"code":"VALIDATION_FAILED","message":"no","detail":{"path":"a"}}}', {
    'x-request-id': 'r1',
  })
  const check = { status: 400, code: 'VALIDATION_FAILED', message: 'no', detail: { path: 'a' }, requestId: 'r1' }
  await assert.rejects(callOp({ url }, ops.service.ready, {}), apiError(check))
})

test('204 is undefined', async () => {
  answering(204, '')
  assert.equal(await callOp({ url }, ops.service.ready, {}), undefined)
})

test('an answer from somebody else says whose it is not', async () => {
  answering(502, '<html>Bad gateway</html>')
  await assert.rejects(callOp({ url }, ops.service.ready, {}), (error: ApiError) => {
    assert.equal(error.code, 'BAD_ANSWER')
    assert.equal(error.status, 502)
    assert.match(error.message, /Bad gateway/)
    return true
  })
  answering(200, 'ok')
  await assert.rejects(callOp({ url }, ops.service.ready, {}), apiError({ code: 'BAD_ANSWER', status: 200 }))
})

test('an envelope of somebody else is told from ours by its code', async () => {
  for (const { status, type, body } of FOREIGN) {
    answering(status, body, { 'content-type': type })
    await assert.rejects(callOp({ url }, ops.service.ready, {}), apiError({ code: 'BAD_ANSWER', status }))
  }
  for (const code of [...Object.keys(FAULTS), 'OF_A_LATER_VERSION_2']) {
    answering(404, JSON.stringify({ error: { code, message: 'no' } }))
    await assert.rejects(callOp({ url }, ops.service.ready, {}), apiError({ code, status: 404 }))
  }
})

test('a redirect is not followed, but named', async () => {
  answering(308, '', { location: 'https://elsewhere.example/readyz' })
  await assert.rejects(callOp({ url }, ops.service.ready, {}), /redirects to https:\/\/elsewhere\.example\/readyz/)
})

test('nobody there: UNREACHABLE with the address', async () => {
  const empty = createServer()
  empty.listen(0, '127.0.0.1')
  await once(empty, 'listening')
  const { port } = empty.address() as AddressInfo
  empty.close()
  await once(empty, 'close')
  await assert.rejects(callOp({ url: `http://127.0.0.1:${port}` }, ops.service.ready, {}), (error: ApiError) => {
    assert.equal(error.code, 'UNREACHABLE')
    assert.equal(error.status, 0)
    assert.match(error.message, new RegExp(`127\\.0\\.0\\.1:${port}.*ECONNREFUSED`))
    return true
  })
})

test('what only reads is sent once more when its connection is closed, and nothing else is', async () => {
  const close = (request: IncomingMessage) => void request.socket.destroy()
  answer = (request) => {
    close(request)
    answering(200, '{"runs":[],"nextCursor":null}')
  }
  await callOp({ url }, ops.runs.list, { org: 'acme' })
  assert.equal(seen.length, 2)
  answer = close
  await assert.rejects(callOp({ url }, ops.runs.list, { org: 'acme' }), apiError({ status: 0, code: 'UNREACHABLE' }))
  assert.equal(seen.length, 4)
  await assert.rejects(callOp({ url }, ops.runs.cancel, { run: RUN }), apiError({ status: 0, code: 'UNREACHABLE' }))
  assert.equal(seen.length, 5)
})

test('an answer that does not come is UNREACHABLE after the deadline', async () => {
  answer = () => {}
  const call = callOp({ url }, ops.service.ready, {}, { deadlineMs: 50 })
  await assert.rejects(call, apiError({ code: 'UNREACHABLE' }))
})

test("the caller's own abort comes back as it was given", async () => {
  const controller = new AbortController()
  const reason = new Error('enough')
  answer = () => controller.abort(reason)
  await assert.rejects(callOp({ url }, ops.service.ready, {}, { signal: controller.signal }), reason)
})

test('a stream outlives the deadline and ends with the signal', async () => {
  const controller = new AbortController()
  answer = (_request, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.write('a')
    setTimeout(() => response.write('b'), 1500)
  }
  const response = await openOp({ url }, ops.runs.stream, { run: RUN }, { deadlineMs: 1000, signal: controller.signal })
  let text = ''
  await assert.rejects(async () => {
    for await (const chunk of response.body!) {
      text += Buffer.from(chunk).toString()
      if (text === 'ab') controller.abort()
    }
  })
  assert.equal(text, 'ab')
})

test('a path argument that would lead elsewhere is refused before anything is sent', async () => {
  for (const run of ['..', '.', '', undefined]) {
    await assert.rejects(
      callOp({ url }, ops.runs.get, { run: run as never }),
      apiError({ code: 'VALIDATION_FAILED', detail: { path: 'run' } }),
    )
  }
  assert.deepEqual(seen, [])
})

test('what cannot be sent is told as that, and a credential never with its text', async () => {
  answering(200, '{}')
  const refused = async (act: () => Promise<unknown>, status: number, said: RegExp) => {
    await assert.rejects(act, (error) => {
      const { message, stack, cause } = error as ApiError
      assert.match(message, said)
      assert.doesNotMatch(`${message} ${stack} ${String(cause)}`, /SECRET/)
      return apiError({ status, code: status === 401 ? 'UNAUTHENTICATED' : 'VALIDATION_FAILED' })(error)
    })
  }
  const get = (apiKey: string, run = RUN) => callOp({ url, apiKey }, ops.runs.get, { run })
  for (const key of ['wl_SECRET\nx', 'wl_SECRET\nwl_SECRET\n', 'wl_SECRET\u2019'])
    await refused(() => get(key), 401, /^The API key or session cannot be sent/)
  await refused(() => get('wl_x', 'run_\ud800'), 400, /runs\.get was given cannot be sent: URI malformed/)
  const input = 10n as never
  const trigger = () => callOp({ url }, ops.runs.trigger, { org: 'acme', workflow: 'hello', input })
  await refused(trigger, 400, /runs\.trigger was given cannot be sent: .*BigInt/)
  const headers = { authorization: 'Bearer SECRET\nx' }
  await refused(() => callOp({ url }, ops.runs.get, { run: RUN }, { headers }), 400, /"authorization" of runs\.get/)
  assert.equal(seen.length, 0)
  // As `fetch` has it: what a file or a variable has around it is no part of the credential.
  await get('wl_x\n')
  assert.equal(seen[0]?.headers.authorization, 'Bearer wl_x')
})

test('only a change that went out may be done without an answer, and its error names it', async (t) => {
  const cancel = (deadlineMs?: number) => callOp({ url }, ops.runs.cancel, { run: RUN }, { deadlineMs })
  const maybe = apiError({ mayBeDone: true, operation: 'runs.cancel', names: { run: RUN } })
  const lost: [how: string, answer: typeof answer][] = [
    ['closed', (request) => void request.socket.destroy()],
    ['nonsense', (request) => void request.socket.end('HTTP/1.1 nonsense\r\n\r\n')],
    [
      'too short',
      (_request, response) =>
        void response.writeHead(200, { 'content-length': '9' }).write('{}', () => response.destroy()),
    ],
    ['a page', (_request, response) => void response.writeHead(200).end('<html>')],
    ['a page of a proxy', (_request, response) => void response.writeHead(504).end('<html>')],
    ['broken inside', (_request, response) => void response.writeHead(500).end('{"error":{"code":"INTERNAL"}}')],
  ]
  for (const [how, each] of lost) {
    answer = each
    await assert.rejects(cancel(), maybe, how)
    await assert.rejects(callOp({ url }, ops.service.ready, {}), apiError({ mayBeDone: false }), how)
  }
  answer = () => {}
  await assert.rejects(cancel(50), maybe)
  answering(503, '{"error":{"code":"UNAVAILABLE","message":"no","detail":{"mayBeDone":false}}}')
  await assert.rejects(cancel(), apiError({ status: 503, mayBeDone: false }))
  answering(404, '{"error":{"code":"NOT_FOUND","message":"no"}}')
  await assert.rejects(cancel(), apiError({ mayBeDone: false, operation: 'runs.cancel' }))
  const closing = createNetServer((socket) => socket.on('error', () => undefined).destroy())
  await once(closing.listen(0, '127.0.0.1'), 'listening')
  t.after(() => closing.close())
  const withoutTls = `https://127.0.0.1:${(closing.address() as AddressInfo).port}`
  for (const nobody of ['http://127.0.0.1:1', 'http://localhost:1', withoutTls])
    await assert.rejects(
      callOp({ url: nobody }, ops.runs.cancel, { run: RUN }),
      apiError({ status: 0, mayBeDone: false }),
    )
})
