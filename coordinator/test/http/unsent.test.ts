// Answers that nobody reads lay in the memory of µWS without a bound: a connection that went on asking was served, and
// each request began the 10 s anew after which µWS cuts it. A viewer's key took 600 MiB a minute.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { afterEach, test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import type { OrgId } from '@windlass/shared/ids.ts'
import { createLog } from '@windlass/shared/log.ts'
import { within } from '@windlass/shared/time.ts'
import { createUnreadBytes, type UnreadBytes } from '../../limits/unread-bytes.ts'
import { aCaller, RUN, type StubOptions, type StubServer, startStub } from './stub-server.ts'

const MIB = 1024 * 1024
/** Against an endless wait only. */
const MOST_MS = 60_000
/** More than the kernel and a reader's socket hold together. */
const LARGE = 16 * MIB
const INPUT = `/v1/runs/${RUN}/input`
const SCHEMA = '/schemas/workflow.json'
const MCP = '/mcp/v1'

let server: StubServer | undefined
let sockets: Socket[] = []
/** Requests that have reached a handler, and who has heard of the last one. */
let calls = 0
let called = () => {}

afterEach(async () => {
  for (const socket of sockets) socket.destroy()
  sockets = []
  await server?.close()
  server = undefined
  calls = 0
})

async function started(value: unknown, options: StubOptions = {}): Promise<StubServer> {
  const handler = () => {
    calls += 1
    called()
    return value
  }
  const handlers = { 'runs.input': handler, 'service.workflowSchema': handler }
  return (server = await startStub({ handlers, strict: false, ...options }))
}

/** A connection of which nothing is read until somebody listens. */
async function connection(): Promise<Socket> {
  const socket = connect(server!.port, '127.0.0.1')
  sockets.push(socket)
  socket.on('error', () => {})
  socket.pause()
  await once(socket, 'connect')
  return socket
}

function ask(socket: Socket, line: string, more: string[] = []): void {
  socket.write([`${line} HTTP/1.1`, 'Host: a', ...more, '', ''].join('\r\n'))
}

const owner = (org = 'acme') => `Authorization: Bearer owner@${org}`

/** Asks again and again, and reads nothing, until the connection ends or so many requests were served. */
async function askUnread(socket: Socket, most: number, line: string, more: string[] = []): Promise<void> {
  const closed = new Promise<'closed'>((resolve) => socket.once('close', () => resolve('closed')))
  for (let n = 0; n < most; n++) {
    const served = new Promise<'served'>((resolve) => (called = () => resolve('served')))
    ask(socket, line, more)
    // A socket of which nothing is read hears of its end when it writes.
    const writing = setInterval(() => ask(socket, line, more), 1000)
    const what = await within(MOST_MS, Promise.race([closed, served]), 'neither served nor closed')
    clearInterval(writing)
    if (what === 'closed') return
  }
}

async function read(socket: Socket): Promise<Buffer> {
  const pieces: Buffer[] = []
  socket.on('data', (piece: Buffer) => pieces.push(piece))
  socket.resume()
  if (!socket.closed) await within(MOST_MS, once(socket, 'close'), 'it does not end')
  return Buffer.concat(pieces)
}

test('whoever asks again before the answer was taken gets no second one', async () => {
  await started({ input: 'x'.repeat(LARGE) })
  const socket = await connection()
  await askUnread(socket, 3, `GET ${INPUT}`, [owner()])
  assert.equal(calls, 1)
})

test('small answers to strangers that are not taken end at what the kernel holds', async () => {
  await started({ version: 'x'.repeat(16_000) })
  const socket = await connection()
  await askUnread(socket, 4000, `GET ${SCHEMA}`)
  assert.ok(socket.destroyed, `${calls} answers of 16 KB lie here`)
})

test('of answers without a body one in so many ends its connection, and says so', async () => {
  await started({ version: 'x' })
  const socket = await connection()
  let text = ''
  socket.on('data', (piece: Buffer) => (text += piece.toString()))
  socket.resume()
  let asked = 0
  for (; asked < 5000 && !socket.destroyed; asked++) {
    const over = Promise.race([once(socket, 'data'), once(socket, 'close')])
    ask(socket, `GET ${SCHEMA}`, ['If-None-Match: *'])
    await within(MOST_MS, over, 'no answer')
    if (/connection: close/i.test(text)) await within(MOST_MS, once(socket, 'close'), 'it does not end')
  }
  assert.ok(socket.destroyed, 'it goes on for ever')
  const answers = text.split('\r\n\r\n')
  assert.equal(answers.pop(), '')
  assert.equal(answers.length, asked)
  assert.match(answers.at(-1)!, /^HTTP\/1\.1 304 Not Modified\r\n[^]*connection: close$/i)
})

test('a connection that is to end with its answer ends, also where that is not taken', async () => {
  await started({ input: 'x'.repeat(2000) })
  const socket = await connection()
  ask(socket, `POST ${MCP}`, ['Content-Length: 1, 1'])
  const text = (await read(socket)).toString()
  assert.match(text, /^HTTP\/1\.1 400 [^]*connection: close/i)
})

test('what readers of an org leave unread is bounded, and readers of others are not cut for it', async () => {
  const log = createLog({}, 'error')
  const unread = createUnreadBytes({ log, of: 'answer', org: 2.5 * LARGE, all: 100 * LARGE, sparesOne: true })
  const caller = async (token: string) => {
    const found = await aCaller(token)
    return { ...found, orgId: found.org as OrgId }
  }
  await started({ input: 'x'.repeat(LARGE) }, { unread, caller })
  const asked: Socket[] = []
  for (const org of ['other', 'acme', 'acme', 'acme']) {
    const socket = await connection()
    const served = new Promise<void>((resolve) => (called = resolve))
    ask(socket, `GET ${INPUT}`, [owner(org), 'Connection: close'])
    await within(MOST_MS, served, 'not served')
    asked.push(socket)
  }
  const got = await Promise.all(asked.map(async (socket) => (await read(socket)).length > LARGE))
  assert.deepEqual(got, [true, false, true, true])
})

test('of the readers of an org who take nothing are cut, and not who takes all the time', async () => {
  const log = createLog({}, 'error')
  const unread = createUnreadBytes({ log, of: 'answer', org: 2.5 * LARGE, all: 100 * LARGE, sparesOne: true })
  await started({ input: 'x'.repeat(LARGE) }, { unread })
  const asking = async () => {
    const socket = await connection()
    const served = new Promise<void>((resolve) => (called = resolve))
    ask(socket, `GET ${INPUT}`, [owner(), 'Connection: close'])
    await within(MOST_MS, served, 'not served')
    return socket
  }
  const steady = await asking()
  let bytes = 0
  const take = async (most: number) => {
    while (!steady.closed && bytes < most) {
      bytes += (steady.read() as Buffer | null)?.length ?? 0
      await wait(1)
    }
  }
  await asking()
  // So much of it that the kernel has taken more.
  await take(LARGE / 2)
  await asking()
  await within(MOST_MS, take(LARGE), 'it stands still')
  assert.ok(bytes >= LARGE, `${bytes} of ${LARGE}`)
})

test('what a slow reader takes is seen before the kernel tells of room', async () => {
  let seen = () => {}
  const took = new Promise<void>((resolve) => (seen = resolve))
  let holds = 0
  const unread: UnreadBytes = {
    hold() {
      holds += 1
      if (holds > 1) seen()
      return () => {}
    },
  }
  await started({ input: 'x'.repeat(LARGE) }, { unread })
  const socket = await connection()
  ask(socket, `GET ${INPUT}`, [owner()])
  let bytes = 0
  // Less than a third of what the kernel holds, and enough for the reader's side to tell of it.
  while (bytes < MIB / 2) {
    bytes += (socket.read() as Buffer | null)?.length ?? 0
    await wait(1)
  }
  await within(MOST_MS, Promise.race([took, once(socket, 'close')]), 'nothing is seen')
  assert.ok(holds > 1, 'it was cut')
})

test('of an answer whoever takes nothing is cut', async () => {
  await started({ input: 'x'.repeat(LARGE) }, { stallMs: 300 })
  const socket = await connection()
  ask(socket, `GET ${INPUT}`, [owner()])
  const late = AbortSignal.timeout(MOST_MS)
  // A socket of which nothing is read hears of its end when it writes.
  while (!socket.closed && !late.aborted) {
    socket.write('G')
    await wait(100)
  }
  assert.ok(socket.closed, 'it is still open')
})

test('one that is larger than an org may have is sent all the same', async () => {
  const log = createLog({}, 'error')
  const unread = createUnreadBytes({ log, of: 'answer', org: MIB, all: 100 * LARGE, sparesOne: true })
  await started({ input: 'ü'.repeat(LARGE) }, { unread })
  const socket = await connection()
  ask(socket, `GET ${INPUT}`, [owner(), 'Connection: close'])
  const text = (await read(socket)).toString()
  assert.ok(text.endsWith(`${'ü'.repeat(LARGE)}"}`))
})

test('an answer that is taken too slowly is cut, whatever else comes', async () => {
  await started({ input: 'x'.repeat(4 * LARGE) }, { answerDeadlineMs: 300 })
  const socket = await connection()
  ask(socket, `GET ${INPUT}`, [owner(), 'Connection: close'])
  let bytes = 0
  while (!socket.closed && bytes < 4 * LARGE) {
    bytes += (socket.read(64 * 1024) as Buffer | null)?.length ?? 0
    await wait(5)
  }
  assert.ok(bytes < 4 * LARGE, 'all of it came')
})
