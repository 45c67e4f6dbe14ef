import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type ClientRequest, type IncomingMessage, request } from 'node:http'
import { after, before, test } from 'node:test'
import { createBytesInFlight } from '../../limits/bytes-in-flight.ts'
import { type StubServer, startStub } from './stub-server.ts'

// 300,000 lists in 900 KB are 14 MiB as values. Each request waits here until the test lets its handler go on.

const BODY = Buffer.from(JSON.stringify({ input: Array.from({ length: 290_000 }, () => []) }))
const MOST_OF_ORG = 4
/** Against an endless wait only. */
const MOST_MS = 120_000
const MOST_BYTES = 20 * BODY.length

let server: StubServer
let inHandler = 0
const waiting: (() => void)[] = []
let arrived: () => void = () => {}

before(async () => {
  server = await startStub({
    bodies: createBytesInFlight({ org: MOST_BYTES, all: 2 * MOST_BYTES }, { what: 'Requests' }),
    handlers: {
      'runs.trigger': async () => {
        inHandler++
        assert.ok(inHandler <= MOST_OF_ORG, 'one more than there are seats')
        await new Promise<void>((resolve) => {
          waiting.push(resolve)
          arrived()
        })
        inHandler--
        return {}
      },
      'runs.cancel': () => ({}),
    },
    strict: false,
  })
})
after(async () => {
  arrived = letAllGo
  letAllGo()
  await server.close()
})

const letAllGo = () => waiting.splice(0).forEach((goOn) => goOn())

/** Resolves when so many handlers are at work at once. */
const full = () => new Promise<void>((resolve) => (arrived = () => waiting.length === MOST_OF_ORG && resolve()))

/** A body of which the last byte is missing. */
function begin(): { outgoing: ClientRequest; status: Promise<number | undefined> } {
  const outgoing = request(`${server.url}/v1/orgs/acme/workflows/hello/runs`, {
    method: 'POST',
    agent: false,
    headers: { authorization: 'Bearer owner', 'content-type': 'application/json', 'content-length': BODY.length },
  })
  const status = (once(outgoing, 'response') as Promise<[IncomingMessage]>).then(([response]) => {
    response.resume()
    return response.statusCode
  })
  outgoing.write(BODY.subarray(0, -1))
  return { outgoing, status }
}

test(
  'of large bodies that end at one moment a few are values at once, and the others come in turn',
  { timeout: MOST_MS },
  async () => {
    const posts = Array.from({ length: 12 }, begin)
    let isFull = full()
    for (const { outgoing } of posts) outgoing.end(BODY.subarray(-1))
    await isFull
    // What is small does not wait for them.
    const small = await fetch(`${server.url}/v1/runs/run_01jd0000000000000000000000/cancel`, {
      method: 'POST',
      headers: { authorization: 'Bearer owner', 'content-type': 'application/json' },
      body: '{}',
    })
    assert.equal(small.status, 200)
    for (let left = posts.length - MOST_OF_ORG; left >= 0; left -= MOST_OF_ORG) {
      isFull = full()
      for (const goOn of waiting.splice(0)) goOn()
      if (left > 0) await isFull
    }
    const statuses = await Promise.all(posts.map(({ status }) => status))
    assert.deepEqual(new Set(statuses), new Set([201]))
  },
)

test('bytes that an org has on the way are bounded, also of bodies that trickle in', { timeout: MOST_MS }, async () => {
  const posts = Array.from({ length: 30 }, begin)
  arrived = () => {}
  for (const { outgoing } of posts) outgoing.end(BODY.subarray(-1))
  // Those that were taken wait for the test.
  assert.equal(await Promise.race(posts.map(({ status }) => status)), 429)
  arrived = letAllGo
  letAllGo()
  const statuses = await Promise.all(posts.map(({ status }) => status))
  assert.deepEqual(new Set(statuses), new Set([201, 429]))
  assert.ok(statuses.filter((status) => status === 201).length >= 20)
})
