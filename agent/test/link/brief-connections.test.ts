import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { test, type TestContext } from 'node:test'
import { until } from '@windlass/shared/test/_kit/until.ts'
import { WebSocketServer } from 'ws'
import { createClock } from '../../link/clock.ts'
import { createLink } from '../../link/link.ts'
import { PACES } from '../../paces.ts'
import { aLog } from '../_kit/an-agent.ts'

/** Welcomes each connection, and ends it: so it goes with an agent whose entries are refused again and again. */
async function welcomingBriefly(t: TestContext): Promise<string> {
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1' })
  server.on('connection', (socket) => {
    socket.once('message', () => {
      socket.send(JSON.stringify({ t: 'welcome' }))
      socket.close()
    })
  })
  t.after(() => server.close())
  await once(server, 'listening')
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

/** Pauses of an agent whose connections end right after their welcome, the longest that chance may choose. */
async function pausesOf(t: TestContext, mostPauseMs: number): Promise<unknown[]> {
  t.mock.method(Math, 'random', () => 1)
  const { log, lines } = aLog()
  const link = createLink({
    url: await welcomingBriefly(t),
    clock: createClock(),
    log,
    credential: () => Promise.resolve('token'),
    formerCredentials: () => Promise.resolve(undefined),
    refusedMs: PACES.refusedMs,
    mostPauseMs: () => mostPauseMs,
  })
  const end = new AbortController()
  const hello = () => ({ t: 'hello' }) as never
  const ended = link.keep(end.signal, { hello, onFrame: () => undefined, onDown: () => undefined })
  await until('four ends', () => lines.length === 4)
  end.abort()
  await ended
  return lines.map(({ name, nextTryMs }) => [name, nextTryMs])
}

const down = (ms: number) => ['link.down', ms]

test('connections that end right after their welcome are dialled again more and more slowly', async (t) => {
  assert.deepEqual(await pausesOf(t, 30_000), [250, 500, 1000, 2000].map(down))
})

test('no pause is longer than what the agent holds allows', async (t) => {
  assert.deepEqual(await pausesOf(t, 300), [250, 300, 300, 300].map(down))
})
