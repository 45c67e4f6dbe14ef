// Requests that came in one packet were answered in one turn of the event loop: with 24 connections and 1 MB/s in all,
// without any credential, nobody else was served for 10 s.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { after, before, test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { within } from '@windlass/shared/time.ts'
import { createRequestTurns } from '../../http/request-turns.ts'
import { type StubServer, startStub } from './stub-server.ts'

/** Against an endless wait only. */
const MOST_MS = 60_000
const AT_ONCE = 32

let server: StubServer
before(async () => void (server = await startStub({ handlers: {}, strict: false })))
after(() => server.close())

test('thousands of requests in one packet end their connection, whatever they ask', async () => {
  for (const line of ['GET /nothing', 'GET /healthz', 'DELETE /v1/me', 'PUT /mcp/v1', 'OPTIONS /mcp/v1']) {
    const socket = connect(server.port, '127.0.0.1')
    socket.on('error', () => {})
    await once(socket, 'connect')
    let answered = 0
    socket.on('data', (bytes: Buffer) => (answered += bytes.toString('latin1').split('HTTP/1.1 ').length - 1))
    const closed = new Promise((resolve) => socket.once('close', resolve))
    socket.write(`${line} HTTP/1.1\r\nHost: a\r\n\r\n`.repeat(10_000))
    await within(MOST_MS, closed, `${line} reads on`)
    assert.ok(answered <= 2 * AT_ONCE, `${line}: ${answered} answers`)
  }
})

test('many connections with a request each are answered, again and again', async () => {
  const asked = Array.from({ length: 4 * AT_ONCE }, async () => {
    for (let n = 0; n < 3; n++) {
      const answer = await fetch(`${server.url}/nothing`)
      assert.equal(answer.status, 404)
      await answer.arrayBuffer()
    }
  })
  await within(MOST_MS, Promise.all(asked), 'an answer is missing')
})

test('so many requests begin in a turn of the event loop, and the others in the next ones, in order', async () => {
  const turns = createRequestTurns()
  const begun: number[] = []
  const come = (n: number) => {
    const turn = turns.next()
    if (turn) void turn.then(() => begun.push(n))
    else begun.push(n)
  }
  for (let n = 0; n < 2 * AT_ONCE + 1; n++) come(n)
  for (const most of [AT_ONCE, 2 * AT_ONCE, 2 * AT_ONCE + 1]) {
    assert.deepEqual(begun, [...Array(most).keys()])
    await setImmediate()
  }
  await setImmediate()
  assert.equal(turns.next(), undefined)
})
