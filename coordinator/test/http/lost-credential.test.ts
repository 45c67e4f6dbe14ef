// The credential is looked at before the body comes, which may take minutes; what it asks for is done afterwards.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { after, before, test } from 'node:test'
import { Fault } from '@windlass/shared/errors.ts'
import { pause } from '@windlass/shared/time.ts'
import { until } from '../_kit/until.ts'
import { announce } from '@windlass/shared/test/_kit/until.ts'
import { aCaller, type StubServer, startStub } from './stub-server.ts'

/** More than a credential may serve without being looked up. */
const SLOW_MS = 1100
const BODY = JSON.stringify({ input: 'what costs money' })

let server: StubServer
let lookUps = 0
let isRevoked = false
let made = 0

before(async () => {
  server = await startStub({
    handlers: { 'runs.trigger': () => ({ made: ++made }) },
    strict: false,
    caller: (token) => {
      lookUps++
      announce()
      return isRevoked ? Promise.reject(new Fault('UNAUTHENTICATED')) : aCaller(token)
    },
  })
})
after(() => server.close())

/** Sends a body in two pieces with the act between them. Resolves with the status. */
async function whileItComes(act: () => unknown): Promise<number | undefined> {
  lookUps = made = 0
  isRevoked = false
  const outgoing = request(`${server.url}/v1/orgs/acme/workflows/hello/runs`, {
    method: 'POST',
    headers: { authorization: 'Bearer owner', 'content-type': 'application/json', 'content-length': BODY.length },
  })
  const answered = once(outgoing, 'response') as Promise<[IncomingMessage]>
  outgoing.write(BODY.slice(0, 10))
  await until('the credential to be looked up', () => lookUps === 1)
  await act()
  outgoing.end(BODY.slice(10))
  const [response] = await answered
  response.resume()
  return response.statusCode
}

test('who loses the credential while a body comes is refused, and nothing is done', async () => {
  const status = await whileItComes(async () => {
    isRevoked = true
    await pause(SLOW_MS)
  })
  assert.deepEqual([status, made], [401, 0])
})

test('a body that comes slowly from somebody who keeps it is taken', async () => {
  const status = await whileItComes(() => pause(SLOW_MS))
  assert.deepEqual([status, made, lookUps], [201, 1, 2])
})
