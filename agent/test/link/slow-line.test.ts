import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { after, before, test } from 'node:test'
import { announce, until } from '@windlass/shared/test/_kit/until.ts'
import { LEAST_PART_CHARS, partOf } from '@windlass/shared/wire/parts.ts'
import { WebSocketServer } from 'ws'
import { CONNECT_MS, openSocket, type Socket } from '../../link/socket.ts'
import { slowProxy, type SlowProxy } from '../_kit/slow-proxy.ts'

const KIB = 1024
const BYTES_PER_S = 6 * KIB
let server: WebSocketServer
let proxy: SlowProxy

before(async () => {
  server = new WebSocketServer({ port: 0, host: '127.0.0.1' })
  await once(server, 'listening')
  proxy = await slowProxy(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, BYTES_PER_S)
})
after(async () => {
  await proxy.close()
  server.close()
})

function welcomed(url: string): Promise<Socket> {
  return new Promise((resolve) => {
    const onFrame = (_frame: unknown, socket: Socket) => resolve(socket)
    openSocket({ url, token: 't', connectMs: CONNECT_MS, onOpen() {}, onFrame })
  })
}

test('a heartbeat comes through a slow line though an upload is under way', async () => {
  const arrived = { bytes: 0, beats: [] as string[] }
  server.once('connection', (other) => {
    other.send(JSON.stringify({ t: 'welcome', leastPartChars: LEAST_PART_CHARS }))
    other.on('message', (data: Buffer) => {
      const text = data.toString()
      if (partOf(text)) arrived.bytes += data.length
      else arrived.beats.push(text)
      announce()
    })
  })
  const socket = await welcomed(proxy.url)
  const sending = socket.send('e'.repeat(300 * KIB), 'entries')
  for (const startsAt of [0, 30 * KIB]) {
    await until('some of it', () => arrived.bytes >= startsAt)
    const before = arrived.bytes
    const beat = `beat at ${startsAt}`
    void socket.send(beat, 'others')
    await until(`the ${beat}`, () => arrived.beats.includes(beat))
    const between = arrived.bytes - before
    // No time, as machines are busy: so much takes this line 7 s.
    assert.ok(between <= 40 * KIB, `it stood behind ${between} bytes`)
  }
  assert.ok(arrived.bytes < 300 * KIB)
  socket.close('done')
  await socket.ended
  await sending
})

test('a coordinator that says nothing of short parts gets none, over whatever line', async () => {
  const lengths: number[] = []
  server.once('connection', (other) => {
    other.send(JSON.stringify({ t: 'welcome' }))
    other.on('message', (data: Buffer) => {
      lengths.push(data.length)
      announce()
    })
  })
  const socket = await welcomed(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
  await socket.send('e'.repeat(100 * KIB), 'entries')
  await until('all of it', () => lengths.reduce((sum, length) => sum + length, 0) > 100 * KIB)
  // Those of before refuse a part below 32 Ki that is not the last.
  assert.ok(Math.min(...lengths.slice(0, -1)) >= 32 * KIB, lengths.join(', '))
  socket.close('done')
  await socket.ended
})
