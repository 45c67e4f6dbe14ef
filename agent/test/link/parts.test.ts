import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { after, before, test } from 'node:test'
import { announce, until } from '@windlass/shared/test/_kit/until.ts'
import { partOf } from '@windlass/shared/wire/parts.ts'
import { type WebSocket, WebSocketServer } from 'ws'
import { CONNECT_MS, openSocket, type Socket } from '../../link/socket.ts'
import { aProgram } from '../_kit/bundle.ts'
import { withAgent } from '../_kit/with-agent.ts'

const MIB = 1024 * 1024
let server: WebSocketServer

before(async () => {
  server = new WebSocketServer({ port: 0, host: '127.0.0.1' })
  await once(server, 'listening')
})
after(() => server.close())

/** Both ends of a connection, and the messages that arrive, each by the lane that its part says, or whole. */
async function connected(): Promise<{ socket: Socket; other: WebSocket; arrived: string[] }> {
  const arrived: string[] = []
  const accepted = once(server, 'connection') as Promise<[WebSocket]>
  const opened = Promise.withResolvers<Socket>()
  const { port } = server.address() as AddressInfo
  openSocket({
    url: `http://127.0.0.1:${port}`,
    token: 't',
    connectMs: CONNECT_MS,
    onOpen: opened.resolve,
    onFrame() {},
  })
  const [other] = await accepted
  other.on('message', (data: Buffer) => {
    const text = data.toString()
    const part = partOf(text)
    arrived.push(part ? `${part.lane}${part.isLast ? ' end' : ''}` : text)
    announce()
  })
  return { socket: await opened.promise, other, arrived }
}

test('a heartbeat comes between the parts of a long frame', async () => {
  const { socket, other, arrived } = await connected()
  // Nothing is read until both were passed on.
  other.pause()
  const sent = socket.send('e'.repeat(8 * MIB), 'entries')
  assert.ok(sent)
  assert.equal(socket.send('beat', 'others'), undefined)
  other.resume()
  await sent
  await until('all to arrive', () => arrived.at(-1) === 'entries end')
  const parts = arrived.filter((each) => each.startsWith('entries')).length
  // 64 Ki characters each, and shorter ones until the line is known to be fast.
  assert.ok(parts >= 128 && parts < 200, `${parts} parts`)
  const at = arrived.indexOf('beat')
  assert.ok(at >= 0 && at <= 10, `behind ${at} parts`)
  socket.close('done')
})

test('what comes behind a long frame in its lane waits for its last part', async () => {
  const { socket, arrived } = await connected()
  void socket.send('e'.repeat(2 * MIB), 'entries')
  void socket.send('o'.repeat(MIB), 'others')
  const last = socket.send('small', 'entries')
  await last
  await until('both to arrive', () => arrived.includes('small') && arrived.includes('others end'))
  assert.equal(arrived.indexOf('small') > arrived.indexOf('entries end'), true)
  // Parts of both lanes come in turn.
  assert.ok(arrived.indexOf('others') < arrived.indexOf('entries end'))
  socket.close('done')
})

test('what waits when the connection ends is not sent, and nobody waits for it', async () => {
  const { socket, other } = await connected()
  other.pause()
  const sent = socket.send('e'.repeat(64 * MIB), 'entries')
  other.terminate()
  await socket.ended
  await sent
  assert.equal(socket.send('small', 'entries'), undefined)
})

withAgent('an output of half a million characters arrives in parts, and as it was', async ({ fake }) => {
  const program = await aProgram(`return ['🌊é"'.repeat(100_000)]`)
  const placement = fake.offer(program)
  const ending = await fake.ending(placement)
  assert.ok(ending.how === 'returned')
  assert.equal(ending.outputText, JSON.stringify(['🌊é"'.repeat(100_000)]))
})
