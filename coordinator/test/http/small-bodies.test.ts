// Bodies of just under 64 KiB were counted nowhere: 3,600 requests of one org that waited for their turns, parsed, were
// 4 GiB of values, and stopped everybody else for up to 23 s.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { Agent, type IncomingMessage, request } from 'node:http'
import { after, afterEach, before, test } from 'node:test'
import type { OrgId } from '@windlass/shared/ids.ts'
import { within } from '@windlass/shared/time.ts'
import { aCaller, type StubServer, startStub } from './stub-server.ts'

/** Against an endless wait only. */
const MOST_MS = 60_000
const TRIGGER = '/v1/orgs/acme/workflows/hello/runs'
/** 21,000 objects in 64 KB count as 1.8 MB: 26 of them are values at once, and 256 wait. */
const HEAVY = `{"input":[1${',{}'.repeat(21_000)}]}`
const LIGHT = JSON.stringify({ input: { text: 'x'.repeat(900), some: Array.from({ length: 20 }, (_, n) => `n${n}`) } })
const MOST_VALUES = 28
const MOST_TEXTS = 270

const agent = new Agent({ keepAlive: false, maxSockets: Infinity })
let server: StubServer
/** Handlers that wait until the test lets them go on. */
const waiting: (() => void)[] = []
let isHeld = true

before(async () => {
  const trigger = async () => {
    if (isHeld) await new Promise<void>((resolve) => waiting.push(resolve))
    return {}
  }
  server = await startStub({
    handlers: { 'runs.trigger': trigger },
    strict: false,
    caller: async (token) => {
      const found = await aCaller(token.split('/')[0]!)
      return { ...found, orgId: (token.split('/')[1] ?? found.orgId) as OrgId }
    },
  })
})

afterEach(() => {
  isHeld = false
  for (const goOn of waiting.splice(0)) goOn()
})

after(async () => {
  agent.destroy()
  await server.close()
})

interface Sent {
  status: number
  text: string
}

async function post(body: string, as: string): Promise<Sent> {
  const headers = {
    authorization: `Bearer owner/${as}`,
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
    'content-length': Buffer.byteLength(body),
  }
  const outgoing = request(`${server.url}${TRIGGER}`, { method: 'POST', agent, headers })
  outgoing.end(body)
  const [answer] = (await once(outgoing, 'response')) as [IncomingMessage]
  let text = ''
  for await (const piece of answer.setEncoding('utf8') as AsyncIterable<string>) text += piece
  return { status: answer.statusCode!, text }
}

test('of small bodies full of values a few are values at once, some wait, and more are refused at once', async () => {
  isHeld = true
  const statuses: number[] = []
  const all = Array.from({ length: 400 }, () => post(HEAVY, 'org_a').then(({ status }) => statuses.push(status)))
  const refused = Promise.any(all)
  await within(MOST_MS, refused, 'none is refused')
  // What others of this and other orgs send, and what is tiny, goes on.
  const other = post(HEAVY, 'org_b')
  const tiny = post('{"input":1}', 'org_a')
  while (waiting.length < 2) await new Promise((resolve) => setImmediate(resolve))
  await within(MOST_MS, untilRefused(statuses, 400 - MOST_VALUES - MOST_TEXTS), 'too many wait')
  assert.ok(waiting.length <= MOST_VALUES + 2, `${waiting.length} are values at once`)
  assert.deepEqual([...new Set(statuses)], [429])
  isHeld = false
  for (const goOn of waiting.splice(0)) goOn()
  await within(MOST_MS, Promise.all(all), 'some have no answer')
  assert.equal((await other).status, 201)
  assert.equal((await tiny).status, 201)
  assert.ok(statuses.filter((status) => status === 201).length >= 200, 'what waits has its turn')
})

async function untilRefused(statuses: number[], most: number): Promise<void> {
  while (statuses.length < most) await new Promise((resolve) => setTimeout(resolve, 5))
}

test('hundreds of common small bodies are served at once', async () => {
  isHeld = true
  const all = Array.from({ length: 1500 }, () => post(LIGHT, 'org_c'))
  const full = async () => {
    while (waiting.length < 1500) await new Promise((resolve) => setTimeout(resolve, 5))
  }
  await within(MOST_MS, full(), 'some wait')
  isHeld = false
  for (const goOn of waiting.splice(0)) goOn()
  assert.deepEqual([...new Set((await Promise.all(all)).map(({ status }) => status))], [201])
})
