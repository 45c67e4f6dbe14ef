import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import { randomOf } from '@windlass/shared/test/_kit/seed.ts'
import type { RunEvent } from '@windlass/shared/model/event.ts'
import { ApiError, createClient } from '../../client/index.ts'
import type { FollowOptions } from '../../client/index.ts'
import { KEY, startFake } from '../_kit/fake-service.ts'
import type { FakeService } from '../_kit/fake-service.ts'
import { SSE_DONE, aRun, events, sendSseHead, sendStream, sseText } from '../_kit/samples.ts'

const run = aRun()

async function followAll(fake: FakeService, options: FollowOptions = {}): Promise<RunEvent[]> {
  const client = createClient({ url: fake.url, apiKey: KEY })
  const seen: RunEvent[] = []
  for await (const event of client.follow(run.id, { signal: AbortSignal.timeout(60_000), ...options })) seen.push(event)
  return seen
}

const idOf = ({ cursor, at }: RunEvent) => `${cursor}.${at}`

test('events come in order and the iteration ends after `done`', async (t) => {
  const log = events(['lifecycle', 'run.queued'], ['log', 'log.stdout', { text: 'hi' }], ['lifecycle', 'run.completed'])
  const fake = await startFake(t, { 'runs.stream': (args, response) => sendStream(response, log, args) })
  assert.deepEqual(await followAll(fake, { channels: ['lifecycle', 'log'] }), log)
  assert.deepEqual(await followAll(fake, { since: 1 }), log.slice(2))
})

test('a connection cut anywhere loses no event and tells none twice', async (t) => {
  const log = events(
    ...Array.from({ length: 40 }, (_, i): [RunEvent['channel'], string, { text: string }] => [
      'phase',
      'phase',
      { text: `é${i}→` },
    ]),
  )
  const random = randomOf(7)
  let connections = 0
  const fake = await startFake(t, {
    'runs.stream': (args, response, request) => {
      const since = Number(args['since'])
      if (since > 0) assert.equal(request.headers['last-event-id'], idOf(log[since - 1]!))
      // A server may send what the reader has already; that must not be told again.
      const from = Math.max(0, since - 1)
      const text = log.slice(from).map(sseText).join('') + SSE_DONE
      const bytes = Buffer.from(text)
      const isLast = ++connections > 12
      sendSseHead(response)
      response.write(isLast ? bytes : bytes.subarray(0, Math.floor(random.next() * 900)), () =>
        isLast ? response.end() : response.destroy(),
      )
    },
  })
  assert.deepEqual(await followAll(fake), log)
  assert.ok(connections > 3, `${connections} connections`)
})

test('after a restore the events come from the first one on, and the reader is told why', async (t) => {
  const lost = events(['lifecycle', 'run.queued'], ['log', 'log.stdout'], ['log', 'log.stdout'])
  const log = lost.map((event) => ({ ...event, at: event.at + 1 }))
  const message = 'The database was restored.'
  const ids: unknown[] = []
  const fake = await startFake(t, {
    'runs.stream': (args, response, request) => {
      ids.push(request.headers['last-event-id'])
      if (ids.length === 3) return sendStream(response, log, args)
      sendSseHead(response)
      const reset = `event: reset\ndata: ${JSON.stringify({ message })}\nid: 0\n\n`
      const text = ids.length === 1 ? lost.map(sseText).join('') : reset + sseText(log[0]!)
      response.write(text, () => response.destroy())
      return undefined
    },
  })
  const messages: string[] = []
  const channels: FollowOptions['channels'] = ['lifecycle', 'log']
  const seen = await followAll(fake, { channels, onReset: (why) => messages.push(why) })
  assert.deepEqual(seen, [...lost, ...log])
  assert.deepEqual(ids, [undefined, idOf(lost[2]!), idOf(log[0]!)])
  assert.deepEqual(messages, [message])
})

test('a silent connection is given up for a new one', async (t) => {
  const log = events(['lifecycle', 'run.queued'], ['lifecycle', 'run.completed'])
  let connections = 0
  const fake = await startFake(t, {
    'runs.stream': (args, response) => {
      if (++connections > 1) return sendStream(response, log, args)
      sendSseHead(response)
      response.write(sseText(log[0]!))
      return undefined
    },
  })
  const reasons: string[] = []
  assert.deepEqual(await followAll(fake, { silenceMs: 150, onReconnect: (why) => reasons.push(why) }), log)
  assert.equal(connections, 2)
  assert.equal(reasons.length, 1)
})

test('heartbeats keep a quiet connection', async (t) => {
  const log = events(['lifecycle', 'run.queued'])
  const fake = await startFake(t, {
    'runs.stream': (_args, response) => {
      sendSseHead(response)
      let beats = 0
      const timer = setInterval(() => {
        response.write(': heartbeat\n\n')
        if (++beats < 8) return
        clearInterval(timer)
        response.end(log.map(sseText).join('') + SSE_DONE)
      }, 60)
    },
  })
  assert.deepEqual(await followAll(fake, { silenceMs: 300 }), log)
  assert.equal(fake.asked.length, 1)
})

test('a refusal is not tried again', async (t) => {
  const fake = await startFake(t)
  await assert.rejects(followAll(fake), (error) => error instanceof ApiError && error.code === 'NOT_FOUND')
})

test('a server that stays away is given up after the patience', async (t) => {
  const gone = await startFake(t)
  await gone.close()
  const started = performance.now()
  await assert.rejects(
    followAll(gone, { patienceMs: 400 }),
    (error) => error instanceof ApiError && error.code === 'UNREACHABLE',
  )
  assert.ok(performance.now() - started >= 400)
})

test('a page in place of the events is an outage, which ends or is given up after the patience', async (t) => {
  const log = events(['lifecycle', 'run.completed'])
  let pages = 2
  const fake = await startFake(t, {
    'runs.stream': (args, response) => {
      if (pages-- <= 0) return sendStream(response, log, args)
      response.writeHead(200, { 'content-type': 'text/html' })
      response.end('<html>\n\n<p>maintenance</p>\n</html>\n')
      return undefined
    },
  })
  assert.deepEqual(await followAll(fake), log)
  pages = Infinity
  await assert.rejects(followAll(fake, { patienceMs: 400, signal: AbortSignal.timeout(20_000) }), {
    code: 'UNREACHABLE',
    message: /answered 200 with text\/html in place of events/,
  })
})

test('what `onReset` throws ends the iteration', async (t) => {
  const fake = await startFake(t, {
    'runs.stream': (_, response) => {
      sendSseHead(response)
      response.end('event: reset\ndata: {"message":"begun anew"}\n\n')
    },
  })
  const mine = new RangeError('what was written cannot be taken back')
  const onReset = () => {
    throw mine
  }
  await assert.rejects(followAll(fake, { onReset, signal: AbortSignal.timeout(20_000) }), mine)
})

test('a server in trouble is asked again', async (t) => {
  const log = events(['lifecycle', 'run.completed'])
  let connections = 0
  const fake = await startFake(t, {
    'runs.stream': (args, response) => {
      if (++connections > 2) return sendStream(response, log, args)
      response.writeHead(503, { 'content-type': 'application/json' })
      response.end('{"error":{"code":"UNAVAILABLE","message":"later"}}')
      return undefined
    },
  })
  assert.deepEqual(await followAll(fake), log)
})

test('a reader that breaks off closes its connection, and an aborted one throws the reason', async (t) => {
  const log = events(['lifecycle', 'run.queued'])
  const closed: Promise<unknown>[] = []
  const fake = await startFake(t, {
    'runs.stream': (_args, response) => {
      closed.push(once(response, 'close'))
      sendSseHead(response)
      response.write(sseText(log[0]!))
    },
  })
  const client = createClient({ url: fake.url, apiKey: KEY })
  for await (const event of client.follow(run.id)) if (event.cursor === 1) break
  const controller = new AbortController()
  const reason = new Error('enough')
  const aborted = (async () => {
    for await (const event of client.follow(run.id, { signal: controller.signal }))
      controller.abort(event.cursor === 1 ? reason : 0)
  })()
  await assert.rejects(aborted, (error) => error === reason)
  await Promise.all(closed)
  assert.equal(closed.length, 2)
})
