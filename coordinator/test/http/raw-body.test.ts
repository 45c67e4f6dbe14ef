// What counts as in memory of a body that its handler reads itself.
import assert from 'node:assert/strict'
import { EventEmitter } from 'node:events'
import { test } from 'node:test'
import { ClientGone } from '../../unforeseen.ts'
import type { HttpRequest, HttpResponse } from '../../call/exchange.ts'
import { RawBody } from '../../http/raw-body.ts'
import { createBytesInFlight } from '../../limits/bytes-in-flight.ts'

const MOST = 1000

function aBody() {
  const headers = { 'transfer-encoding': 'chunked' }
  const request = Object.assign(new EventEmitter(), { headers }) as unknown as HttpRequest & EventEmitter
  const response = new EventEmitter() as unknown as HttpResponse & EventEmitter
  const bodies = createBytesInFlight({ org: MOST, all: MOST })
  const raw = new RawBody({ request, response, bodies, address: '127.0.0.1', limit: MOST })
  const read = raw.read({ onPiece: () => {} })
  request.emit('data', Buffer.alloc(MOST))
  const isHeld = () => {
    const other = bodies.hold('another', () => {})
    try {
      other.take(1)
      return false
    } catch {
      return true
    } finally {
      other.release()
    }
  }
  return { raw, request, response, read, isHeld }
}

test('a body that is whole counts until its handler has ended, also when its sender leaves', async () => {
  const { raw, request, response, read, isHeld } = aBody()
  request.emit('end')
  await read
  response.emit('abort')
  assert.equal(isHeld(), true)
  raw.release()
  assert.equal(isHeld(), false)
})

test('and until what goes on behind its answer has ended', async () => {
  for (const settle of ['resolve', 'reject'] as const) {
    const { raw, request, read, isHeld } = aBody()
    request.emit('end')
    await read
    const work = Promise.withResolvers<void>()
    raw.holdFor(work.promise)
    raw.release()
    assert.equal(isHeld(), true)
    work[settle]()
    await work.promise.catch(() => {})
    assert.equal(isHeld(), false)
  }
})

test('a body that is still coming counts no more when its sender leaves', async () => {
  const { request, response, read, isHeld } = aBody()
  response.emit('abort')
  request.emit('close')
  await assert.rejects(read, ClientGone)
  assert.equal(isHeld(), false)
})
