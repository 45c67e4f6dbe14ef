import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type ClientRequest, type IncomingMessage, request } from 'node:http'
import { after, before, test } from 'node:test'
import { createBytesInFlight } from '../../limits/bytes-in-flight.ts'
import type { OrgId } from '@windlass/shared/ids.ts'
import { aCaller, type StubServer, startStub } from './stub-server.ts'

// 290,000 lists in 900 KB count as 24 MB of values. Each request waits here until the test lets its handler go on.

const BODY = Buffer.from(JSON.stringify({ input: Array.from({ length: 290_000 }, () => []) }))
const MOST_OF_ORG = 2
/** Against an endless wait only. */
const MOST_MS = 120_000
const MOST_BYTES = 20 * BODY.length

let server: StubServer
let inHandler = 0
let most = MOST_OF_ORG
const waiting: (() => void)[] = []
let arrived: () => void = () => {}

before(async () => {
  server = await startStub({
    bodies: createBytesInFlight({ org: MOST_BYTES, all: 2 * MOST_BYTES }, { what: 'Requests' }),
    handlers: {
      'runs.trigger': async () => {
        inHandler++
        assert.ok(inHandler <= most, 'more than there is room for')
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
    caller: async (token) => {
      const [role = '', orgId] = token.split('@')
      return { ...(await aCaller(role)), ...(orgId && { orgId: orgId as OrgId }) }
    },
  })
})
after(async () => {
  arrived = letAllGo
  letAllGo()
  await server.close()
})

const letAllGo = () => waiting.splice(0).forEach((goOn) => goOn())

/** Resolves when so many handlers are at work at once. */
const full = () => new Promise<void>((resolve) => (arrived = () => waiting.length === most && resolve()))

/** A body of which the last byte is missing. */
function begin(body = BODY, caller = 'owner'): { outgoing: ClientRequest; status: Promise<number | undefined> } {
  const outgoing = request(`${server.url}/v1/orgs/acme/workflows/hello/runs`, {
    method: 'POST',
    agent: false,
    headers: { authorization: `Bearer ${caller}`, 'content-type': 'application/json', 'content-length': body.length },
  })
  const status = (once(outgoing, 'response') as Promise<[IncomingMessage]>).then(([response]) => {
    response.resume()
    return response.statusCode
  })
  outgoing.write(body.subarray(0, -1))
  return { outgoing, status }
}

test(
  'of large bodies that end at one moment a few are values at once, and the others come in turn',
  { timeout: MOST_MS },
  async () => {
    const posts = Array.from({ length: 12 }, () => begin())
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
  const posts = Array.from({ length: 30 }, () => begin())
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

test('bodies of few values that wait in their handlers keep no other waiting', { timeout: MOST_MS }, async () => {
  const text = Buffer.from(JSON.stringify({ input: 'x'.repeat(100_000) }))
  const callers = ['owner@a', 'owner@b', 'owner@c']
  most = 60
  const isFull = full()
  const posts = Array.from({ length: most }, (_, n) => begin(text, callers[n % callers.length]))
  for (const { outgoing } of posts) outgoing.end(text.subarray(-1))
  await isFull
  letAllGo()
  for (const { status } of posts) assert.equal(await status, 201)
})

test('what a client that left has in its handler still counts', { timeout: MOST_MS }, async () => {
  most = MOST_OF_ORG
  const isFull = full()
  const left = Array.from({ length: most }, () => begin())
  for (const { outgoing, status } of left) {
    status.catch(() => {})
    outgoing.on('error', () => {})
    outgoing.end(BODY.subarray(-1))
  }
  await isFull
  for (const { outgoing } of left) outgoing.destroy()
  arrived = () => {}
  const next = begin()
  next.outgoing.end(BODY.subarray(-1))
  // Of another org, and behind it: when this one is through, the one before would have been too.
  const other = begin(BODY, 'owner@a')
  other.outgoing.end(BODY.subarray(-1))
  most = MOST_OF_ORG + 1
  await full()
  waiting.pop()!()
  assert.equal(await other.status, 201)
  assert.equal(waiting.length, MOST_OF_ORG)
  arrived = letAllGo
  letAllGo()
  assert.equal(await next.status, 201)
})
