import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { afterEach, test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { within } from '@windlass/shared/time.ts'
import { RUN, type StubServer, startStub } from './stub-server.ts'

const TRIGGER = '/v1/orgs/acme/workflows/hello/runs'
const OWNER = 'Authorization: Bearer owner'
const TINY = '1\r\nx\r\n'
/** Against an endless wait only. */
const MOST_MS = 60_000

let server: StubServer | undefined
/** What reached the handler. */
let inputs: unknown[] = []

afterEach(async () => {
  await server?.close()
  server = undefined
  inputs = []
})

async function started(): Promise<StubServer> {
  const trigger = (call: { input: Record<string, unknown> }) => {
    inputs.push(call.input['input'])
    return {}
  }
  // Nothing but what is counted ends a connection here.
  return (server = await startStub({ stallMs: 600_000, handlers: { 'runs.trigger': trigger }, strict: false }))
}

const headOf = (path: string, more: string[]) =>
  [`POST ${path} HTTP/1.1`, 'Host: a', 'Content-Type: application/json', ...more, '', ''].join('\r\n')

async function begin(port: number, path: string, more: string[]): Promise<Socket> {
  const socket = connect(port, '127.0.0.1')
  socket.on('error', () => {})
  socket.setNoDelay()
  await once(socket, 'connect')
  socket.write(headOf(path, more))
  return socket
}

const chunked = (body: Buffer, sizes: () => number): Buffer => {
  const parts: (string | Buffer)[] = []
  for (let at = 0; at < body.length;) {
    const piece = body.subarray(at, at + sizes())
    parts.push(`${piece.length.toString(16)}\r\n`, piece, '\r\n')
    at += piece.length
  }
  parts.push('0\r\n\r\n')
  return Buffer.concat(parts.map((part) => Buffer.from(part)))
}

/** The status of the next answer on the connection. */
async function statusOn(socket: Socket): Promise<number> {
  const [answer] = (await within(MOST_MS, once(socket, 'data'), 'no answer')) as [Buffer]
  return Number(/^HTTP\/1\.1 (\d+)/.exec(answer.toString())?.[1])
}

test(
  'a body in thousands of chunks of a byte ends its connection, whoever sends it',
  { timeout: MOST_MS },
  async () => {
    const { port, url, logged } = await started()
    // The rest of what is read at once must not be taken for a request.
    const more = ['', `0\r\n\r\nGET /healthz HTTP/1.1\r\nHost: a\r\n\r\n`]
    const from = [[TRIGGER], [TRIGGER, OWNER], ['/nothing/here'], [`/v1/runs/${RUN}/cancel`, OWNER], ['/mcp/v1']]
    for (const [path = '', ...headers] of from)
      for (const behind of more) {
        const socket = await begin(port, path, [...headers, 'Transfer-Encoding: chunked'])
        const closed = once(socket, 'close')
        socket.resume()
        socket.write(TINY.repeat(20_000) + behind)
        await within(MOST_MS, closed, `${path} reads on`)
      }
    assert.equal((await fetch(`${url}/healthz`)).status, 503, 'the stub is there')
    assert.deepEqual(inputs, [])
    assert.deepEqual(
      logged.filter(({ level }) => level === 'error'),
      [],
    )
  },
)

test('chunks of all sizes are whole and in order, and their connection goes on', { timeout: MOST_MS }, async () => {
  const { port } = await started()
  const text = Array.from({ length: 100_000 }, (_, n) => n.toString(36)).join(' ')
  const body = Buffer.from(JSON.stringify({ input: text }))
  let seed = 7
  const random = (most: number) => 1 + ((seed = (seed * 48_271) % 2_147_483_647) % most)
  const sizes = [() => 100, () => 72, () => random(300), () => random(40_000), () => (random(2) === 1 ? 3 : 20_000)]
  const reused = await begin(port, TRIGGER, [OWNER, 'Transfer-Encoding: chunked'])
  for (const [n, size] of sizes.entries()) {
    if (n > 0) reused.write(headOf(TRIGGER, [OWNER, 'Transfer-Encoding: chunked']))
    reused.write(chunked(body, size))
    assert.equal(await statusOn(reused), 201)
    assert.equal(inputs.at(-1), text)
  }
  reused.destroy()
  const few = await begin(port, TRIGGER, [OWNER, 'Transfer-Encoding: chunked'])
  few.write(chunked(Buffer.from(JSON.stringify({ input: 'x'.repeat(3000) })), () => 1))
  assert.equal(await statusOn(few), 201, 'some thousand tiny ones are taken')
  few.destroy()
})

test('a slow body goes through byte by byte', { timeout: MOST_MS }, async () => {
  const { port } = await started()
  const text = 'y'.repeat(6000)
  const body = Buffer.from(JSON.stringify({ input: text }))
  const socket = await begin(port, TRIGGER, [OWNER, `Content-Length: ${body.length}`])
  for (const byte of body) {
    socket.write(Buffer.of(byte))
    await setImmediate()
  }
  assert.equal(await statusOn(socket), 201)
  assert.deepEqual(inputs, [text])
  socket.destroy()
})
