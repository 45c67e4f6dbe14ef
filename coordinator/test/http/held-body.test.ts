import assert from 'node:assert/strict'
import { EventEmitter } from 'node:events'
import { test } from 'node:test'
import { readJson } from '../../call/body.ts'
import type { HttpRequest, HttpResponse } from '../../call/exchange.ts'
import { newId } from '@windlass/shared/ids.ts'
import { inTime, roomFor, smallBodies } from '../../http/held-body.ts'
import { createBytesInFlight } from '../../limits/bytes-in-flight.ts'
import { createSeats } from '../../limits/seats.ts'
import { DEFAULT_SIZES } from '../../sizes.ts'
import { ClientGone } from '../../unforeseen.ts'

const BODY = Buffer.from(JSON.stringify({ input: 'x'.repeat(200_000) }))
const FREE_BYTES = 64 * 1024
const MOST_WAITING = 3
const ORG = newId('org')

/** Less than a body waits for its room. */
const SOON = { timeout: 10_000 }

function aLimit() {
  // There is room for the values of one body, and that is taken.
  const values = createSeats({ org: 1, all: 1 })
  const leave = values.takeFree(ORG)!
  const most = MOST_WAITING * (BODY.length - FREE_BYTES)
  const bodies = createBytesInFlight({ org: most, all: most })
  return { values, leave, bodies }
}

/** Sends a body, as dispatch.ts reads it. `settled`: what came of it. */
function send({ values, bodies }: ReturnType<typeof aLimit>) {
  const headers = { 'content-type': 'application/json', 'content-length': String(BODY.length) }
  const request = Object.assign(new EventEmitter(), { headers })
  const client = Object.assign(new EventEmitter(), { completed: false })
  const response = client as unknown as HttpResponse
  const room = roomFor({ bodies, values, small: smallBodies(), config: DEFAULT_SIZES }, ORG, response)
  const read = inTime(response, room, (within) => readJson(request as unknown as HttpRequest, BODY.length, within))
  const settled = read.then(
    () => 'parsed',
    (error: Error & { code?: string }) => (error instanceof ClientGone ? 'gone' : error.code),
  )
  request.emit('data', BODY)
  request.emit('end')
  return { leave: () => client.emit('abort'), settled: settled.finally(room.release) }
}

const isFull = ({ bodies }: ReturnType<typeof aLimit>) => {
  const probe = bodies.hold(ORG)
  try {
    probe.take(BODY.length)
    return false
  } catch {
    return true
  } finally {
    probe.release()
  }
}

test(
  'bodies whose clients leave while they wait for room are let go at once, and counted until then',
  SOON,
  async () => {
    const limit = aLimit()
    const sent = Array.from({ length: MOST_WAITING }, () => send(limit))
    // In line for their turn, and then for room.
    for (let n = 0; n < 10; n++) await new Promise(setImmediate)
    for (const { leave } of sent) leave()
    assert.ok(isFull(limit), 'they are in memory still')
    assert.deepEqual(await Promise.all(sent.map(({ settled }) => settled)), ['gone', 'gone', 'gone'])
    assert.ok(!isFull(limit))
    // Nobody is in line before this one.
    const next = send(limit)
    limit.leave()
    assert.equal(await next.settled, 'parsed')
  },
)

test('a body whose client leaves before it waits for room takes none, and is counted until then', SOON, async () => {
  const limit = aLimit()
  limit.leave()
  const sent = Array.from({ length: MOST_WAITING }, () => send(limit))
  // All have come to their end, and none has had its turn in line.
  for (let n = 0; n < 2; n++) await new Promise<void>((resolve) => process.nextTick(resolve))
  for (const { leave } of sent) leave()
  assert.ok(isFull(limit), 'they are in memory still')
  assert.deepEqual(await Promise.all(sent.map(({ settled }) => settled)), ['gone', 'gone', 'gone'])
  assert.ok(!isFull(limit))
  assert.ok(limit.values.takeFree(ORG))
})
