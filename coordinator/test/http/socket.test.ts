import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { afterEach, test } from 'node:test'
import { within } from '@windlass/shared/time.ts'
import { MESSAGE_BYTES } from '@windlass/shared/wire/parts.ts'
import { type AgentSocket, type ClosedBy, SocketAnswer } from '../../api/call.ts'
import { rawRequest } from './raw-request.ts'
import { type StubOptions, type StubServer, envelope, startStub } from './stub-server.ts'

const PATH = '/runner/v1/socket'
const MIB = 1024 * 1024
const UPGRADE = [
  `GET ${PATH} HTTP/1.1`,
  'Host: a',
  'Connection: Upgrade',
  'Upgrade: websocket',
  'Sec-WebSocket-Version: 13',
  'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
]
let server: StubServer | undefined

afterEach(async () => {
  await server?.close()
  server = undefined
})

async function accepting(accept: (socket: AgentSocket) => void, more: StubOptions = {}): Promise<StubServer> {
  return (server = await startStub({ ...more, handlers: { 'runnerSurface.socket': () => new SocketAnswer(accept) } }))
}

// Node's own client takes headers, which the type of the browsers' does not know.
function dial({ port }: StubServer, token = 'runner'): WebSocket {
  const options = { headers: { authorization: `Bearer ${token}` } }
  return new WebSocket(`ws://127.0.0.1:${port}${PATH}`, options)
}

interface Farewell {
  code: number
  reason: string
}

async function closing(socket: WebSocket): Promise<Farewell> {
  const [event] = (await within(60_000, once(socket, 'close'), 'the socket stays open')) as [Farewell]
  return event
}

test('frames come back as they went, small and large', async () => {
  const large = 'x'.repeat(5 * MIB)
  const echo = (agent: AgentSocket) => agent.onMessage((text) => agent.send(text === 'large' ? large : text))
  const socket = dial(await accepting(echo))
  await within(60_000, once(socket, 'open'), 'no upgrade')
  for (const text of ['', 'ü', 'x'.repeat(MESSAGE_BYTES), large]) {
    socket.send(text === large ? 'large' : text)
    const [event] = (await within(60_000, once(socket, 'message'), 'no echo')) as [MessageEvent]
    assert.equal(event.data, text)
  }
  socket.close(1000)
  assert.equal((await closing(socket)).code, 1000)
})

test('without a credential there is no upgrade but a 401 with its envelope', async () => {
  const { port } = await accepting(() => assert.fail('accepted'))
  const text = await rawRequest(port, UPGRADE, '', /\}\}$/)
  assert.match(text, /^HTTP\/1\.1 401 [^]*www-authenticate: Bearer[^]*"UNAUTHENTICATED"/)
})

test('the answer to an upgrade carries the request id', async () => {
  const { port } = await accepting(() => {})
  const text = await rawRequest(port, [...UPGRADE, 'Authorization: Bearer runner', 'X-Request-Id: up-1'])
  assert.match(text, /^HTTP\/1\.1 101 Switching Protocols\r\n[^]*x-request-id: up-1\r\n/i)
})

test('a plain GET is told to upgrade', async () => {
  const { url } = await accepting(() => assert.fail('accepted'))
  const response = await fetch(url + PATH, { headers: { authorization: 'Bearer runner' } })
  assert.deepEqual([response.status, response.headers.get('upgrade')], [426, 'websocket'])
  assert.equal((await envelope(response)).code, 'UPGRADE_REQUIRED')
})

test('the end of either side reaches the other, with code and reason', async () => {
  const closed = Promise.withResolvers<ClosedBy>()
  const ours = Promise.withResolvers<ClosedBy>()
  const running = await accepting((agent) => {
    agent.onClose(closed.resolve)
    agent.onClose((by) => by === 'coordinator' && ours.resolve(by))
    agent.onMessage((text) => agent.close(4001, text))
  })
  const leaving = dial(running)
  await once(leaving, 'open')
  leaving.close()
  assert.equal(await within(60_000, closed.promise, 'the server was not told'), 'agent')
  const dismissed = dial(running)
  await once(dismissed, 'open')
  dismissed.send('enough')
  const { code, reason } = await closing(dismissed)
  assert.deepEqual([code, reason], [4001, 'enough'])
  await within(60_000, ours.promise, 'the server does not know its own end')
})

test('binary frames, frames over 16 MiB and listeners that throw close the socket', async () => {
  const running = await accepting((agent) =>
    agent.onMessage(() => {
      throw new Error('cannot read this')
    }),
  )
  const binary = dial(running)
  await once(binary, 'open')
  binary.send(new Uint8Array(3))
  assert.equal((await closing(binary)).code, 1003)
  const large = dial(running)
  await once(large, 'open')
  large.send('x'.repeat(17 * MIB))
  await closing(large)
  const broken = dial(running)
  await once(broken, 'open')
  broken.send('x')
  assert.equal((await closing(broken)).code, 1011)
  assert.equal(running.logged.filter((line) => line.name === 'http.socket.failed').length, 1)
})

test('an agent that does not read is cut off before a frame is lost in silence', async () => {
  const accepted = Promise.withResolvers<AgentSocket>()
  const { port } = await accepting(accepted.resolve)
  const reader = connect(port, '127.0.0.1')
  reader.on('error', () => {})
  reader.write(`${[...UPGRADE, 'Authorization: Bearer runner'].join('\r\n')}\r\n\r\n`)
  reader.pause()
  const agent = await within(60_000, accepted.promise, 'no upgrade')
  const closed = Promise.withResolvers<ClosedBy>()
  agent.onClose(closed.resolve)
  // 64 MiB wait for it at most.
  for (let sent = 0; sent < 100; sent++) agent.send('x'.repeat(MIB))
  assert.equal(await within(60_000, closed.promise, 'the socket stays open'), 'coordinator')
  reader.destroy()
})

test('a stop closes sockets with 1001', async () => {
  const running = await accepting(() => {})
  const socket = dial(running)
  await once(socket, 'open')
  const closed = closing(socket)
  await within(60_000, running.close(), 'the server did not stop')
  assert.equal((await closed).code, 1001)
})

test('a process that dies is told from a machine that is silent', async () => {
  const ends: Promise<ClosedBy>[] = []
  const accepted: PromiseWithResolvers<void>[] = [Promise.withResolvers(), Promise.withResolvers()]
  const accept = (agent: AgentSocket) => {
    ends.push(new Promise((resolve) => agent.onClose(resolve)))
    accepted[ends.length - 1]!.resolve()
  }
  const { port } = await accepting(accept, { idleS: 8 })
  const open = async (n: number) => {
    const reader = connect(port, '127.0.0.1')
    reader.on('error', () => {})
    reader.write(`${[...UPGRADE, 'Authorization: Bearer runner'].join('\r\n')}\r\n\r\n`)
    await within(60_000, accepted[n]!.promise, 'no upgrade')
    return reader
  }
  const dying = await open(0)
  dying.resetAndDestroy()
  assert.equal(await within(60_000, ends[0]!, 'the end of the process was not noticed'), 'agent')
  // It reads, so that TCP works, and answers no ping.
  const silent = await open(1)
  silent.resume()
  assert.equal(await within(60_000, ends[1]!, 'the silence was not noticed'), 'silence')
  silent.destroy()
})

/** What a client sends masked with zeros. */
const PING = Buffer.from([0x89, 0x80, 0, 0, 0, 0])
const PONG = Buffer.from([0x8a, 0x80, 0, 0, 0, 0])

async function upgraded(port: number): Promise<Socket> {
  const socket = connect(port, '127.0.0.1')
  socket.on('error', () => {})
  socket.write(`${[...UPGRADE, 'Authorization: Bearer runner'].join('\r\n')}\r\n\r\n`)
  let head = ''
  while (!head.endsWith('\r\n\r\n')) {
    const [piece] = (await within(60_000, once(socket, 'data'), 'no upgrade')) as [Buffer]
    head += piece.toString('latin1')
  }
  return socket
}

test('whoever sends pings or pongs by the thousand is ended', async () => {
  const ends: ClosedBy[] = []
  const running = await accepting((agent) => agent.onClose((by) => ends.push(by)))
  for (const sign of [PING, PONG]) {
    const socket = await upgraded(running.port)
    const closed = once(socket, 'close')
    let got = Buffer.alloc(0)
    socket.on('data', (piece: Buffer) => (got = Buffer.concat([got, piece])))
    socket.write(Buffer.concat(Array.from({ length: 50_000 }, () => sign)))
    await within(60_000, closed, 'the socket stays open')
    // Each ping has its answer, up to the one that is too much.
    assert.equal(got.indexOf('too many pings or pongs') > 0, true)
    assert.ok(got.length < 300, `${got.length} bytes`)
  }
  assert.equal(ends.length, 2)
})

test('pings in a measure are answered, and answers to ours are heard', async () => {
  const agents: AgentSocket[] = []
  const running = await accepting((agent) => agents.push(agent))
  const socket = await upgraded(running.port)
  for (let n = 0; n < 50; n++) {
    socket.write(PING)
    const [pong] = (await within(60_000, once(socket, 'data'), 'no pong')) as [Buffer]
    assert.deepEqual([...pong], [0x8a, 0])
  }
  // By its text an agent knows what has arrived.
  socket.write(Buffer.from([0x89, 0x82, 0, 0, 0, 0, 0x31, 0x37]))
  const [pong] = (await within(60_000, once(socket, 'data'), 'no pong')) as [Buffer]
  assert.deepEqual([...pong], [0x8a, 2, 0x31, 0x37])
  socket.destroy()
  const client = dial(running)
  await within(60_000, once(client, 'open'), 'no upgrade')
  await within(60_000, agents[1]!.whenRead(), 'its pong was not heard')
  client.close()
})
