import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { afterEach, test } from 'node:test'
import { pause, within } from '@windlass/shared/time.ts'
import { type Envelope, RUN, type StubServer, envelope, startStub } from './stub-server.ts'

const AUTH = { authorization: 'Bearer owner' }
let server: StubServer | undefined

afterEach(async () => {
  await server?.close()
  server = undefined
})

/** Of a connection whose body goes on and on: what it was answered, and that it ends. */
async function overlong(port: number, line: string, more: string[] = []): Promise<string> {
  const socket = connect(port, '127.0.0.1')
  socket.on('error', () => {})
  let text = ''
  socket.on('data', (chunk: Buffer) => (text += chunk.toString()))
  socket.write([line, 'Host: a', 'Content-Type: application/json', ...more, '', 'the first of many'].join('\r\n'))
  while (!/\r\n\r\n.*\}\}\r\n$/s.test(text)) await once(socket, 'data')
  // It sends on for as long as it is read.
  while (!socket.closed) {
    socket.write(Buffer.alloc(64 * 1024, 'x'))
    await pause(5)
  }
  return text
}

test('a body that is too large is refused at its head, and whoever sends on has the answer', async () => {
  const { port, url, logged } = (server = await startStub({ stallMs: 1000 }))
  const cancel = `POST /v1/runs/${RUN}/cancel HTTP/1.1`
  const text = await within(
    60_000,
    overlong(port, cancel, ['Authorization: Bearer owner', 'Content-Length: 1000000000']),
    'no answer, or no end',
  )
  const [head = '', body = ''] = text.split('\r\n\r\n')
  assert.match(head, /^HTTP\/1\.1 413 Payload Too Large\r\n/)
  assert.match(head, /\r\nconnection: close(\r\n|$)/)
  assert.match(head, /\r\nx-request-id: req_/)
  assert.equal(Number(/content-length: (\d+)/.exec(head)?.[1]), Buffer.byteLength(body))
  assert.equal((JSON.parse(body) as Envelope).error.code, 'PAYLOAD_TOO_LARGE')
  // A stranger has nothing sent for nothing either.
  for (const length of ['Content-Length: 1000000000', 'Transfer-Encoding: chunked\r\n\r\nfffffff'])
    assert.match(await within(60_000, overlong(port, cancel, [length]), 'no answer, or no end'), /^HTTP\/1\.1 401 /)
  assert.equal((await fetch(`${url}/healthz`)).status, 503, 'the stub is there')
  assert.deepEqual(
    logged.filter(({ level }) => level === 'error'),
    [],
  )
})

test('clients that send all before they read get the refusal of a body that is too large', async () => {
  const { url, port } = (server = await startStub())
  const body = 'x'.repeat(5_000_000)
  const options = { method: 'POST', headers: { ...AUTH, 'content-type': 'application/json' }, body }
  for (let n = 0; n < 10; n++) {
    const response = await fetch(`${url}/v1/runs/${RUN}/cancel`, options)
    assert.equal(response.status, 413)
    assert.equal((await envelope(response)).code, 'PAYLOAD_TOO_LARGE')
    const socket = connect(port, '127.0.0.1')
    const lines = [`POST /v1/runs/${RUN}/cancel HTTP/1.1`, 'Host: a', 'Authorization: Bearer owner']
    await new Promise<void>((resolve, reject) => {
      socket.on('error', reject)
      socket.write([...lines, 'Content-Type: application/json', `Content-Length: ${body.length}`, '', ''].join('\r\n'))
      socket.write(body, () => resolve())
    })
    const [answer] = (await once(socket, 'data')) as [Buffer]
    assert.match(answer.toString(), /^HTTP\/1\.1 413 /)
    socket.destroy()
  }
})

test('whoever sends on and on behind a refusal is read for a few MiB only', async () => {
  const { port } = (server = await startStub({ stallMs: 600_000 }))
  const heads = ['Content-Length: 9000000000\r\n\r\n', 'Transfer-Encoding: chunked\r\n\r\nfffffff\r\n']
  for (const [path, head] of [`/v1/runs/${RUN}/cancel`, '/nope'].flatMap((at) => heads.map((each) => [at, each]))) {
    const socket = connect(port, '127.0.0.1')
    socket.on('error', () => {})
    let answer = ''
    socket.on('data', (chunk: Buffer) => (answer += chunk.toString()))
    socket.write(`POST ${path} HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n${head}`)
    const piece = Buffer.alloc(1024 * 1024, 'x')
    let sent = 0
    for (; sent < 100 && !socket.destroyed; sent++) {
      await new Promise<void>((resolve) => {
        socket.once('close', () => resolve())
        socket.write(piece, () => resolve())
      })
    }
    assert.ok(sent < 50, `${sent} MiB were read behind ${path}, ${head}`)
    assert.match(answer, /^HTTP\/1\.1 40[14] /)
    socket.destroy()
  }
})
