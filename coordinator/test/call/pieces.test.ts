import assert from 'node:assert/strict'
import { EventEmitter } from 'node:events'
import { test } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { readJson } from '../../call/body.ts'
import type { HttpRequest, HttpResponse } from '../../call/exchange.ts'
import { Pieces } from '../../call/pieces.ts'
import { RawBody } from '../../http/raw-body.ts'
import { createBytesInFlight } from '../../limits/bytes-in-flight.ts'

const MIB = 1024 * 1024
/** One for each byte. Kept as objects of their own they take 60 MiB here. */
const PIECES = 300_000

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

function memory(): number {
  collect()
  const { heapUsed, arrayBuffers } = process.memoryUsage()
  return heapUsed + arrayBuffers
}

/** As the framework shows a request whose body comes in chunks. */
function aRequest(): HttpRequest & EventEmitter {
  const headers = { 'content-type': 'application/json', 'transfer-encoding': 'chunked' }
  return Object.assign(new EventEmitter(), { headers }) as unknown as HttpRequest & EventEmitter
}

/** What is in memory when all but the last byte has come. */
function trickle(request: EventEmitter, text: string): number {
  const before = memory()
  for (const byte of Buffer.from(text).subarray(0, -1)) request.emit('data', Uint8Array.of(byte))
  const taken = memory() - before
  request.emit('data', Buffer.from(text).subarray(-1))
  request.emit('end')
  return taken
}

test('a body that comes byte by byte takes little more memory than bytes', async () => {
  const text = JSON.stringify('x'.repeat(PIECES))
  const request = aRequest()
  const body = readJson(request, MIB)
  const taken = trickle(request, text)
  assert.deepEqual(await body, { value: 'x'.repeat(PIECES), bytes: text.length })
  assert.ok(taken < 8 * MIB, `${taken} bytes`)
})

test('so does a delivery of which nobody knows yet who sends it', async () => {
  const request = aRequest()
  const response = new EventEmitter() as unknown as HttpResponse
  const bodies = createBytesInFlight({ org: MIB, all: MIB })
  const raw = new RawBody({ request, response, bodies, address: '127.0.0.1', limit: MIB })
  let heard = 0
  const body = raw.read({ onPiece: ({ byteLength }) => (heard += byteLength) })
  const text = 'y'.repeat(PIECES)
  const taken = trickle(request, text)
  const { saved, bytes } = await body
  assert.deepEqual([saved.toString(), bytes, heard], [text, PIECES, PIECES])
  assert.ok(taken < 8 * MIB, `${taken} bytes`)
})

test('pieces of all sizes are whole and in order', () => {
  for (const sizes of [[0], [1, 1023, 1], [100_000, 1, 65_536, 3], [1024, 1024, 2048, 4096]]) {
    const pieces = new Pieces()
    const all = sizes.map((size, n) => Buffer.alloc(size, String.fromCharCode(97 + n)))
    for (const piece of all) pieces.add(piece)
    assert.equal(pieces.bytes, Buffer.concat(all).length)
    assert.ok(pieces.whole().equals(Buffer.concat(all)))
  }
  assert.equal(new Pieces().whole().length, 0)
})
