import assert from 'node:assert/strict'
import { once } from 'node:events'
import { Agent, type IncomingMessage, request } from 'node:http'
import { after, before, test } from 'node:test'
import { pause } from '@windlass/shared/time.ts'
import { aCaller, type StubServer, startStub } from './stub-server.ts'

// The body comes in while the credential is still being looked up, and rests in the socket meanwhile.

// Of a hundred about fifteen were lost.
const POSTS = 150
const AT_ONCE = 8
const PIECES = 10
const BODY = Buffer.from(JSON.stringify({ input: 'x'.repeat(900_000) }))

let server: StubServer
const agent = new Agent({ keepAlive: true, maxSockets: AT_ONCE })

before(async () => {
  server = await startStub({
    handlers: { 'runs.trigger': ({ input }) => ({ bytes: JSON.stringify(input['input']).length }) },
    strict: false,
    caller: async (token) => {
      await pause(2)
      return aCaller(token)
    },
  })
})
after(async () => {
  agent.destroy()
  await server.close()
})

/** Resolves with what the handler saw. */
async function post(n: number): Promise<unknown> {
  const isChunked = n % 2 === 0
  const outgoing = request(`${server.url}/v1/orgs/acme/workflows/hello/runs`, {
    agent,
    method: 'POST',
    headers: {
      authorization: 'Bearer owner',
      'content-type': 'application/json',
      ...(isChunked ? { 'transfer-encoding': 'chunked' } : { 'content-length': BODY.length }),
    },
  })
  const answered = once(outgoing, 'response') as Promise<[IncomingMessage]>
  const size = Math.ceil(BODY.length / PIECES)
  for (let at = 0; at < BODY.length; at += size) {
    outgoing.write(BODY.subarray(at, at + size))
    // Some come packet by packet, most in one go: only those can be complete when their socket is paused.
    if (n % 5 === 0) await new Promise(setImmediate)
  }
  outgoing.end()
  const [response] = await answered
  return JSON.parse(Buffer.concat(await response.toArray()).toString())
}

test('no large body is lost while its credential is looked up', async () => {
  let next = 0
  const lane = async () => {
    while (next < POSTS) assert.deepEqual(await post(next++), { bytes: 900_002 })
  }
  await Promise.all(Array.from({ length: AT_ONCE }, lane))
})
