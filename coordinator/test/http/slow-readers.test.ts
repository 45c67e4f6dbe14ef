// Readers that take nothing for longer than µWS would wait for them, as on slow lines: 8 to 12 s.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { newId } from '@windlass/shared/ids.ts'
import { within } from '@windlass/shared/time.ts'
import { FileAnswer, PiecesAnswer, SseAnswer, type SseSink } from '../../api/call.ts'
import { RUN, type StubServer, startStub } from './stub-server.ts'

const SILENT_MS = 16_000
/** More than the kernel and a reader's socket hold together. */
const PIECE = Buffer.alloc(256 * 1024, 'a')
const PIECES = 128
const BYTES = PIECES * PIECE.length
const OVER = 'the end'

let folder: string
let server: StubServer

before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'windlass-slow-readers-'))
  const file = join(folder, 'large')
  await writeFile(file, Buffer.concat([...Array.from({ length: PIECES }, () => PIECE), Buffer.from(OVER)]))
  const handlers = {
    'service.download': () => new FileAnswer(file, 'application/gzip', '"of-the-file"'),
    'deliveries.payload': () => new PiecesAnswer(pieces(), 'text/plain'),
    'runs.input': () => ({ input: PIECE.toString().repeat(PIECES) + OVER }),
    'runs.stream': () => new SseAnswer(stream),
  }
  server = await startStub({ handlers, strict: false })
})

after(async () => {
  await server?.close()
  await rm(folder, { recursive: true })
})

async function* pieces(): AsyncGenerator<Uint8Array | string, void, void> {
  for (let n = 0; n < PIECES; n++) yield PIECE
  yield OVER
}

async function stream(sink: SseSink): Promise<void> {
  const event = `data: ${PIECE.toString()}\n\n`
  for (let n = 0; n < PIECES; n++) if (!sink.write(event)) await sink.drained()
  sink.write(`data: ${OVER}\n\n`)
}

/** What somebody gets who takes some bytes, nothing for a while, and then all there is. */
async function gets(path: string): Promise<{ bytes: number; end: string }> {
  const socket = connect(server.port, '127.0.0.1')
  socket.write(`GET ${path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer owner\r\nConnection: close\r\n\r\n`)
  await once(socket, 'readable')
  await wait(SILENT_MS)
  let [bytes, end] = [0, '']
  socket.on('data', (data: Buffer) => {
    bytes += data.length
    end = (end + data.toString('latin1')).slice(-100)
    if (end.includes(OVER)) socket.end()
  })
  await within(60_000, once(socket, 'close'), 'neither the end nor a cut')
  return { bytes, end }
}

const ANSWERS = [
  ['a file', '/downloads/large'],
  ['an answer in pieces', `/v1/deliveries/${newId('dlv')}/payload`],
  ['a stream of events', `/v1/runs/${RUN}/events/stream`],
  ['an answer as a whole', `/v1/runs/${RUN}/input`],
] as const

test('whoever takes nothing for 16 s gets the rest of a file, a stream, pieces, an answer as a whole', async () => {
  const all = await Promise.all(ANSWERS.map(async ([what, path]) => ({ what, ...(await gets(path)) })))
  for (const { what, bytes, end } of all)
    assert.ok(bytes > BYTES && end.includes(OVER), `${what}: ${bytes} bytes, the last: ${end}`)
})
