import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { afterEach, test } from 'node:test'
import { within } from '@windlass/shared/time.ts'
import { SseAnswer, type SseSink } from '../../api/call.ts'
import { Fault } from '@windlass/shared/errors.ts'
import { untilPolled } from '../_kit/until.ts'
import { aCaller, RUN, type StubServer, startStub } from './stub-server.ts'

const AUTH = { authorization: 'Bearer owner' }
const STREAM = `/v1/runs/${RUN}/events/stream`
let server: StubServer | undefined

afterEach(async () => {
  await server?.close()
  server = undefined
})

async function streaming(run: (sink: SseSink) => Promise<void>, stallMs?: number): Promise<StubServer> {
  return (server = await startStub({ handlers: { 'runs.stream': () => new SseAnswer(run) }, stallMs }))
}

/** A reader that asks, and then takes nothing from its socket. */
function stalledReader(port: number) {
  const socket = connect(port, '127.0.0.1')
  socket.pause()
  socket.write(`GET ${STREAM} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer owner\r\n\r\n`)
  return socket
}

test('the headers are there before the first event, and the end of the run is the end of the stream', async () => {
  const go = Promise.withResolvers<void>()
  const { url } = await streaming(async (sink) => {
    await go.promise
    sink.write('data: 1\n\n')
    sink.write('data: 2\n\n')
  })
  const response = await within(60_000, fetch(url + STREAM, { headers: AUTH }), 'no headers')
  assert.equal(response.headers.get('content-type'), 'text/event-stream; charset=utf-8')
  assert.equal(response.headers.get('cache-control'), 'no-store')
  assert.match(response.headers.get('x-request-id') ?? '', /^req_/)
  go.resolve()
  assert.equal(await response.text(), ': ok\n\ndata: 1\n\ndata: 2\n\n')
})

test('a stalled reader holds the writer up, and gets everything once it reads', async () => {
  const events = 2000
  const event = `data: ${'x'.repeat(16_000)}\n\n`
  const waiting = Promise.withResolvers<number>()
  const { port } = await streaming(async (sink) => {
    for (let count = 1; count <= events; count++) {
      if (sink.write(event)) continue
      waiting.resolve(count)
      await sink.drained()
    }
  })
  const reader = stalledReader(port)
  const written = await within(60_000, waiting.promise, 'the writer was never held up')
  assert.ok(written < 1000, `${written} events of 16 kB went into memory`)
  let bytes = 0
  reader.on('data', (chunk: Buffer) => {
    bytes += chunk.length
    if (chunk.subarray(-5).toString() === '0\r\n\r\n') reader.end()
  })
  reader.resume()
  await within(60_000, once(reader, 'close'), 'the stream did not end')
  assert.ok(bytes > events * event.length, `${bytes} bytes of ${events * event.length}`)
})

test('what a stalled reader has left comes once it reads, though nothing more is written', async () => {
  const bytes = 16_000_000
  const [full, taken] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const { port } = await streaming(async (sink) => {
    assert.equal(sink.write('x'.repeat(bytes)), false)
    full.resolve()
    await sink.drained()
    taken.resolve()
    await once(sink.gone, 'abort')
  })
  const reader = stalledReader(port)
  await within(60_000, full.promise, 'the stream was not written')
  let received = 0
  reader.on('data', (chunk: Buffer) => (received += chunk.length))
  reader.resume()
  await untilPolled('all of it', () => received >= bytes)
  await within(60_000, taken.promise, 'the writer was not told')
  reader.destroy()
})

test('a reader that stalls for too long is cut, and its writer told', async () => {
  const ended = Promise.withResolvers<void>()
  const { port, logged } = await streaming(async (sink) => {
    while (!sink.gone.aborted) if (!sink.write('x'.repeat(64 * 1024))) await sink.drained()
    ended.resolve()
  }, 100)
  const reader = stalledReader(port)
  reader.on('error', () => {})
  await within(60_000, ended.promise, 'the writer still waits')
  reader.resume()
  await within(60_000, once(reader, 'close'), 'the reader was not cut')
  assert.deepEqual(logged, [])
})

test('a writer that does not look at the answer is cut before it fills the memory', async () => {
  let written = 0
  const ended = Promise.withResolvers<void>()
  const { port } = await streaming(async (sink) => {
    for (; written < 1000 && !sink.gone.aborted; written++) sink.write('x'.repeat(64 * 1024))
    ended.resolve()
  })
  const reader = stalledReader(port)
  reader.on('error', () => {})
  await within(60_000, ended.promise, 'the writer still writes')
  assert.ok(written < 500, `${written} × 64 KiB were taken`)
  reader.destroy()
})

test('a reader that leaves aborts `gone` and frees a writer that waits', async () => {
  const ended = Promise.withResolvers<void>()
  const { port, logged } = await streaming(async (sink) => {
    while (!sink.gone.aborted) if (!sink.write('x'.repeat(64 * 1024))) await sink.drained()
    ended.resolve()
  })
  const reader = stalledReader(port)
  await once(reader, 'connect')
  reader.resume()
  await once(reader, 'data')
  reader.destroy()
  await within(60_000, ended.promise, 'the writer was not told')
  assert.deepEqual(logged, [])
})

test('a writer that throws breaks the stream off instead of ending it', async () => {
  const go = Promise.withResolvers<void>()
  const { url, logged } = await streaming(async (sink) => {
    sink.write('data: 1\n\n')
    await go.promise
    throw new Error('broken')
  })
  const response = await fetch(url + STREAM, { headers: AUTH })
  go.resolve()
  await assert.rejects(response.text())
  assert.equal(logged[0]?.name, 'http.stream.failed')
})

test('a stop ends streams in order', async () => {
  const running = await streaming(async (sink) => {
    await once(sink.gone, 'abort')
    sink.write('event: last\n\n')
  })
  const response = await fetch(running.url + STREAM, { headers: AUTH })
  const text = response.text()
  await within(60_000, running.close(), 'the server did not stop')
  assert.equal(await text, ': ok\n\nevent: last\n\n')
})

test('a reader whose credential has been revoked is cut, and one that only cannot be looked up stays', async () => {
  let answer: 'good' | 'unknown' | 'revoked' = 'good'
  const asked = { good: 0, unknown: 0, revoked: 0 }
  const ended = Promise.withResolvers<void>()
  server = await startStub({
    recheckMs: 10,
    caller: (token) => {
      asked[answer] += 1
      if (answer === 'unknown') return Promise.reject(new Fault('UNAVAILABLE'))
      return answer === 'good' ? aCaller(token) : Promise.reject(new Fault('UNAUTHENTICATED'))
    },
    handlers: {
      'runs.stream': () =>
        new SseAnswer(async (sink) => {
          sink.gone.addEventListener('abort', () => ended.resolve())
          await ended.promise
        }),
    },
  })
  const response = await fetch(server.url + STREAM, { headers: AUTH })
  const read = assert.rejects(response.text(), 'the stream ended as if the run had')
  await untilPolled('a look at the credential', () => asked.good > 2)
  answer = 'unknown'
  await untilPolled('a look that fails', () => asked.unknown > 2)
  answer = 'revoked'
  await within(60_000, read, 'the reader reads on')
  await within(60_000, ended.promise, 'the writer was not told')
  assert.equal(asked.revoked, 1)
})
