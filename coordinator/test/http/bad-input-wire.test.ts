import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { after, before, test } from 'node:test'
import { DEADLINE_MS } from '@windlass/shared/test/_kit/until.ts'
import { rawRequest } from './raw-request.ts'
import { RUN, type StubServer, startStub } from './stub-server.ts'

let server: StubServer
/** What reached a handler. */
const reached: string[] = []

before(async () => {
  const note = (id: string) => () => {
    reached.push(id)
    return { runs: [], nextCursor: null, status: 'ok' }
  }
  const handlers = { 'runs.trigger': note('trigger'), 'runs.list': note('list'), 'service.health': note('health') }
  server = await startStub({ handlers, strict: false })
})
after(() => server.close())

const TRIGGER = 'POST /v1/orgs/acme/workflows/hello/runs HTTP/1.1'
const LIST = 'GET /v1/orgs/acme/runs HTTP/1.1'
const HOST = 'Host: a'
const KEY = 'Authorization: Bearer owner'
const TYPE = 'Content-Type: application/json'
const SMUGGLED = 'GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n'

/** Sends, and reads to the end of the connection. What nobody closes in time fails. */
async function whole(lines: readonly string[], body: string | Buffer = ''): Promise<string> {
  const socket = connect(server.port, '127.0.0.1')
  await once(socket, 'connect')
  socket.setTimeout(DEADLINE_MS, () => socket.destroy(new Error('the connection stayed open')))
  socket.write(`${lines.join('\r\n')}\r\n\r\n`)
  socket.write(body)
  let text = ''
  for await (const chunk of socket as AsyncIterable<Buffer>) text += chunk.toString('latin1')
  return text
}

async function unreached(act: () => Promise<void>): Promise<void> {
  reached.length = 0
  await act()
  assert.deepEqual(reached, [])
}

test('a length that is none, or comes twice, is refused, and the connection ends', async () => {
  await unreached(async () => {
    for (const [lengths, body] of [
      [['10', '2'], '{}        '],
      [['2', '2'], '{}'],
      [[''], ''],
    ] as const) {
      const text = await whole(
        [TRIGGER, HOST, KEY, TYPE, ...lengths.map((length) => `Content-Length: ${length}`)],
        body,
      )
      assert.match(text, /^HTTP\/1\.1 400 [^]*VALIDATION_FAILED[^]*"header":"content-length"/, lengths.join())
    }
    // By the shorter of the two a second request has begun.
    assert.match(
      await whole([TRIGGER, HOST, KEY, TYPE, 'Content-Length: 2', 'Content-Length: 10'], '{}        '),
      /^HTTP\/1\.1 [45]0/,
    )
    // These the parser below us refuses itself.
    for (const length of ['-2', '+2', '0x2', '2,2', '2.0', '1e1', '99999999999999999999'])
      assert.match(
        await whole([TRIGGER, HOST, KEY, TYPE, `Content-Length: ${length}`], '{}'),
        /^HTTP\/1\.1 400 /,
        length,
      )
  })
})

test('what follows a body of doubtful length is never taken for a request', async () => {
  await unreached(async () => {
    for (const doubtful of ['Content-Length: 2\r\nContent-Length: 40', 'Content-Length: 40\r\nContent-Length: 2'])
      await whole([TRIGGER, HOST, KEY, TYPE, doubtful], `{}${SMUGGLED}`)
    await whole([TRIGGER, HOST, KEY, TYPE, 'Transfer-Encoding: identity', 'Connection: close'], `{}${SMUGGLED}`)
  })
})

test('a body in another coding than chunks is refused, and the connection ends', async () => {
  await unreached(async () => {
    for (const coding of [
      'gzip',
      'gzip, chunked',
      'xchunked',
      'chunked, identity',
      'identity',
      'chunked\r\nTransfer-Encoding: gzip',
    ]) {
      const text = await whole([TRIGGER, HOST, KEY, TYPE, `Transfer-Encoding: ${coding}`], '2\r\n{}\r\n0\r\n\r\n')
      assert.match(text, /^HTTP\/1\.1 400 [^]*"header":"transfer-encoding"/, coding)
    }
    const both = [TRIGGER, HOST, KEY, TYPE, 'Content-Length: 2', 'Transfer-Encoding: chunked']
    assert.match(await whole(both, '2\r\n{}\r\n0\r\n\r\n'), /^HTTP\/1\.1 400 /)
    for (const chunk of ['zz\r\n{}', '-2\r\n{}', '0x2\r\n{}', 'ffffffffffffffffff\r\n{}'])
      assert.match(
        await whole([TRIGGER, HOST, KEY, TYPE, 'Transfer-Encoding: chunked'], chunk),
        /^HTTP\/1\.1 400 /,
        chunk,
      )
  })
})

test('two credentials are none, whichever of them would do', async () => {
  await unreached(async () => {
    for (const pair of [
      ['owner', 'viewer'],
      ['nonsense', 'owner'],
      ['owner', 'owner'],
    ]) {
      const text = await rawRequest(
        server.port,
        [LIST, HOST, ...pair.map((each) => `Authorization: Bearer ${each}`)],
        '',
        /\}\}$/,
      )
      assert.match(text, /^HTTP\/1\.1 401 [^]*UNAUTHENTICATED/, pair.join())
    }
  })
})

test('two content types are none', async () => {
  await unreached(async () => {
    for (const other of ['text/plain', 'application/json']) {
      const lines = [TRIGGER, HOST, KEY, `Content-Type: ${other}`, TYPE, 'Content-Length: 2']
      assert.match(await rawRequest(server.port, lines, '{}', /\}\}$/), /^HTTP\/1\.1 415 [^]*UNSUPPORTED_MEDIA_TYPE/)
    }
  })
})

test('headers that may be lists are read as one', async () => {
  const first = await rawRequest(server.port, [LIST, HOST, KEY])
  const etag = /etag: (\S+)/.exec(first)?.[1] ?? ''
  const lines = [LIST, HOST, KEY, 'If-None-Match: "other"', `If-None-Match: ${etag}`, 'If-None-Match: "third"']
  assert.match(await rawRequest(server.port, lines), /^HTTP\/1\.1 304 /)
})

test('a body that is cut reaches no handler', async () => {
  await unreached(async () => {
    for (const [header, body] of [
      ['Content-Length: 20', '{"input":1'],
      ['Transfer-Encoding: chunked', 'a\r\n{"input":1'],
      ['Transfer-Encoding: chunked', '2\r\n{}\r\n'],
    ]) {
      const socket = connect(server.port, '127.0.0.1')
      await once(socket, 'connect')
      socket.end(`${[TRIGGER, HOST, KEY, TYPE, header].join('\r\n')}\r\n\r\n${body}`)
      socket.resume()
      await once(socket, 'close')
    }
  })
})

test('methods that nobody has are 405, and HEAD is GET without a body', async () => {
  for (const method of ['OPTIONS', 'TRACE', 'CONNECT', 'PROPFIND', 'Q'.repeat(300)]) {
    const text = await rawRequest(server.port, [`${method} /v1/runs/${RUN} HTTP/1.1`, HOST, KEY], '', /\}\}$/)
    assert.match(text, /^HTTP\/1\.1 405 [^]*allow: GET, HEAD, DELETE\r\n[^]*METHOD_NOT_ALLOWED/, method)
  }
  const head = await rawRequest(server.port, ['HEAD /v1/runs/nonsense HTTP/1.1', HOST, KEY])
  assert.match(head, /^HTTP\/1\.1 404 [^]*\r\n\r\n$/)
})

test('what is no HTTP/1.1 is closed with a status, or without one', async () => {
  await unreached(async () => {
    const odd = [
      'GET http://a/v1/orgs/acme/runs HTTP/1.1',
      'OPTIONS * HTTP/1.1',
      'GET /v1/orgs/acme/runs?tag=a b HTTP/1.1',
      'GET /v1/orgs/acme/runs?tag=a\0b HTTP/1.1',
      'GET /v1/orgs/acme/runs HTTP/1.0',
      'PRI * HTTP/2.0',
      '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03',
    ]
    for (const line of odd) assert.match(await whole([line, HOST, KEY]), /^HTTP\/1\.1 505 /, line)
  })
})

test('headers that are none are not answered, and the connection does not stay', async () => {
  await unreached(async () => {
    const odd = ['garbage', 'Authorization : Bearer owner', 'X-Odd: a\0b', 'X-Odd: a\r\n b']
    const texts = await Promise.all(odd.map((line) => whole([LIST, HOST, line])))
    for (const text of texts) assert.ok(text === '' || /^HTTP\/1\.1 [45]/.test(text), text)
  })
})

test('an address or headers beyond what is read are 431, and those below it are told in the envelope', async () => {
  const tag = (length: number) => `GET /v1/orgs/acme/runs?tag=${'a'.repeat(length)} HTTP/1.1`
  for (const length of [3000, 15_900])
    assert.match(
      await rawRequest(server.port, [tag(length), HOST, KEY], '', /\}\}$/),
      /^HTTP\/1\.1 400 [^]*"path":"tag"/,
      String(length),
    )
  const long = `X-Long: ${'a'.repeat(15_900)}`
  assert.match(await rawRequest(server.port, [LIST, HOST, KEY, long]), /^HTTP\/1\.1 200 /)
  assert.match(await whole([tag(20_000), HOST, KEY]), /^HTTP\/1\.1 431 /)
  assert.match(await whole([LIST, HOST, KEY, `X-Long: ${'a'.repeat(20_000)}`]), /^HTTP\/1\.1 431 /)
  const many = Array.from({ length: 200 }, (_, i) => `X-${i}: 1`)
  assert.match(await whole([LIST, HOST, KEY, ...many]), /^HTTP\/1\.1 431 /)
})

test('an address in bytes that are no UTF-8 is refused by its name', async () => {
  const lines = (tag: string) =>
    Buffer.from(`GET /v1/orgs/acme/runs?tag=${tag} HTTP/1.1\r\nHost: a\r\n${KEY}\r\n\r\n`, 'latin1')
  const socket = connect(server.port, '127.0.0.1')
  await once(socket, 'connect')
  socket.write(lines('caf\u00e9'))
  const [chunk] = (await once(socket, 'data')) as [Buffer]
  socket.destroy()
  assert.match(chunk.toString(), /^HTTP\/1\.1 400 [^]*not UTF-8[^]*"path":"tag"/)
})

test('whoever waits to be told to go on is told', async () => {
  const lines = [TRIGGER, HOST, KEY, TYPE, 'Expect: 100-continue', 'Content-Length: 2']
  const text = await rawRequest(server.port, lines, '{}', /HTTP\/1\.1 20\d [^]*\r\n\r\n/)
  assert.match(text, /^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 201 /)
})

test('requests that come in one packet are answered one after the other', async () => {
  const lists = Array.from({ length: 3 }, (_, n) => `${LIST}\r\n${HOST}\r\nX-Request-Id: n${n}\r\n${KEY}`).join(
    '\r\n\r\n',
  )
  const text = await rawRequest(server.port, [lists], '', /x-request-id: n2/)
  assert.deepEqual(text.match(/HTTP\/1\.1 \d+|(?<=x-request-id: )\w+/g), [
    'HTTP/1.1 200',
    'n0',
    'HTTP/1.1 200',
    'n1',
    'HTTP/1.1 200',
    'n2',
  ])
})

test('after all that the server serves, and nothing was an error of ours', async () => {
  assert.match(await rawRequest(server.port, [LIST, HOST, KEY]), /^HTTP\/1\.1 200 /)
  assert.deepEqual(
    server.logged.filter((line) => line['level'] === 'error'),
    [],
  )
})
