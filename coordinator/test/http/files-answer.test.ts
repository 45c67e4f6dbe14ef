import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { setTimeout } from 'node:timers/promises'
import { afterEach, test } from 'node:test'
import { Fault } from '@windlass/shared/errors.ts'
import { within } from '@windlass/shared/time.ts'
import { FilesAnswer } from '../../api/call.ts'
import type { Source } from '../../workflows/sources.ts'
import { untilPolled } from '../_kit/until.ts'
import { aCaller, type StubServer, startStub } from './stub-server.ts'

const PATH = '/v1/orgs/acme/workflows/any'
const AUTH = { authorization: 'Bearer owner' }
let server: StubServer | undefined
let left = 0

afterEach(async () => {
  await server?.close()
  server = undefined
})

type Stub = Pick<NonNullable<Parameters<typeof startStub>[0]>, 'stallMs' | 'recheckMs' | 'caller'>

/** Answers with what `pieces` yields as files. */
async function serving(pieces: () => AsyncGenerator<string>, options: Stub = {}): Promise<StubServer> {
  left = 0
  const files: Source = {
    digest: 'a'.repeat(64),
    async *json() {
      try {
        yield* pieces()
      } finally {
        left++
      }
    },
    paths: () => Promise.resolve([]),
    read: () => Promise.resolve(undefined),
    glance: () => Promise.resolve([]),
    others: () => Promise.resolve([]),
  }
  const get = () => new FilesAnswer({ workflow: {}, version: {} }, files)
  return (server = await startStub({ handlers: { 'workflows.get': get }, ...options, strict: false }))
}

const MIB = 1024 * 1024
const FILE = JSON.stringify({ path: 'a', content: 'ä'.repeat(MIB) })

async function* files(count: number) {
  for (let n = 0; n < count; n++) yield n === 0 ? FILE : `,${FILE}`
}

test('few files come as one text with its length, many in chunks', async () => {
  for (const [count, isOneText] of [
    [0, true],
    [8, false],
  ] as const) {
    const { url } = await serving(() => files(count))
    const response = await fetch(url + PATH, { headers: AUTH })
    assert.equal(response.headers.has('content-length'), isOneText)
    assert.equal(response.headers.get('content-type'), 'application/json; charset=utf-8')
    assert.match(response.headers.get('etag')!, /^"[\w-]{27}"$/)
    const expected = `{"workflow":{},"version":{},"files":[${Array.from({ length: count }, () => FILE).join()}]}`
    assert.ok((await response.text()) === expected)
    assert.equal(left, 1)
    await server?.close()
  }
})

test('a reader that takes nothing is cut', async () => {
  const { port } = await serving(() => files(100), { stallMs: 200 })
  const stalled = connect(port, '127.0.0.1')
  stalled.on('error', () => {})
  stalled.write(`GET ${PATH} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer owner\r\n\r\n`)
  await untilPolled('it was given up', () => left === 1)
  const closed = once(stalled, 'close')
  stalled.resume()
  await within(60_000, closed, 'the connection stays open')
})

test('what goes wrong first is answered, and what goes wrong later breaks the answer off', async () => {
  async function* refused() {
    yield ''
    throw new Fault('RATE_LIMITED')
  }
  const refusing = await serving(refused)
  assert.equal((await fetch(refusing.url + PATH, { headers: AUTH })).status, 429)
  await server?.close()
  async function* damaged() {
    yield* files(8)
    throw new Error('damaged')
  }
  const { url, logged } = await serving(damaged)
  const response = await fetch(url + PATH, { headers: AUTH })
  assert.equal(response.status, 200)
  await assert.rejects(response.text())
  await untilPolled('it is logged', () => logged.some(({ error }) => /damaged/.test(String(error))))
})

test('a reader whose credential is revoked is cut, and one that only cannot be looked up reads on', async () => {
  let answer: 'good' | 'unknown' | 'revoked' = 'good'
  let unknown = 0
  const { url } = await serving(
    async function* () {
      for (let n = 0; ; n++) {
        yield n === 0 ? FILE : `,${FILE}`
        await setTimeout(1)
      }
    },
    {
      recheckMs: 10,
      caller: (token) => {
        if (answer === 'unknown') unknown++
        if (answer === 'unknown') return Promise.reject(new Fault('UNAVAILABLE'))
        return answer === 'good' ? aCaller(token) : Promise.reject(new Fault('UNAUTHENTICATED'))
      },
    },
  )
  const response = await fetch(url + PATH, { headers: AUTH })
  const reader = response.body!.getReader()
  const readOn = async () => {
    for (;;) if ((await reader.read()).done) return
  }
  await reader.read()
  answer = 'unknown'
  await untilPolled('a look that fails', () => unknown > 2)
  await reader.read()
  answer = 'revoked'
  await within(60_000, assert.rejects(readOn(), 'the answer ended as if it were whole'), 'the reader reads on')
  await untilPolled('the end of its source', () => left === 1)
})
