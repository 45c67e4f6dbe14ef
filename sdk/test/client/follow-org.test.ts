import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { test } from 'node:test'
import type { OrgEvent } from '@windlass/shared/model/event.ts'
import { createClient } from '../../client/index.ts'
import { KEY, ORG, startFake } from '../_kit/fake-service.ts'
import { aRun, sendSseHead } from '../_kit/samples.ts'

const SERIES = '5f0c2a9be4d1'
const run = aRun()

const frame = (event: string, position: number, data: object) =>
  `event: ${event}\ndata: ${JSON.stringify(data)}\nid: ${SERIES}.${position}\n\n`
const first = (event: 'ready' | 'reset', position: number) =>
  frame(event, position, { position: `${SERIES}.${position}` })
const queued = (n: number) => ({ at: n, type: 'run.queued', run: run.id, workflow: 'hello', cursor: 1, data: { n } })
const orgEvent = (n: number): OrgEvent => ({ position: `${SERIES}.${n}`, ...queued(n) })

/** Sends this and breaks the connection off. */
function sendAndBreak(response: ServerResponse, text: string): void {
  sendSseHead(response)
  response.write(text, () => response.destroy())
}

test('events of an org come each once through broken connections, until the signal ends them', async (t) => {
  const asked: unknown[] = []
  const fake = await startFake(t, {
    'events.stream': (args, response) => {
      const { since } = args as { since?: string }
      asked.push(since)
      const from = since === undefined ? 0 : Number(since.split('.')[1])
      const next = frame('run.queued', from + 1, queued(from + 1))
      sendAndBreak(response, first('ready', from) + next)
    },
  })
  const client = createClient({ url: fake.url, apiKey: KEY, org: ORG })
  const stop = new AbortController()
  const seen: OrgEvent[] = []
  const ready: unknown[] = []
  const follow = async () => {
    for await (const event of client.followOrg({
      signal: stop.signal,
      onReady: (position, isReset) => ready.push([position, isReset]),
    })) {
      seen.push(event)
      if (seen.length === 3) stop.abort(new Error('enough'))
    }
  }
  await assert.rejects(follow(), /enough/)
  assert.deepEqual(seen, [orgEvent(1), orgEvent(2), orgEvent(3)])
  assert.deepEqual(asked, [undefined, `${SERIES}.1`, `${SERIES}.2`])
  assert.deepEqual(ready, [[`${SERIES}.0`, false]])
})

test('a reader is told where events were gone, and goes on from there', async (t) => {
  const fake = await startFake(t, {
    'events.stream': (args, response) => {
      const isFirst = args['since'] === `${SERIES}.4`
      sendAndBreak(response, isFirst ? first('reset', 9) : first('ready', 9) + frame('run.queued', 10, queued(10)))
    },
  })
  const client = createClient({ url: fake.url, apiKey: KEY, org: ORG })
  const ready: unknown[] = []
  const onReady = (position: string, isReset: boolean) => void ready.push([position, isReset])
  for await (const event of client.followOrg({ since: `${SERIES}.4`, onReady })) {
    assert.deepEqual(event, orgEvent(10))
    break
  }
  assert.deepEqual(ready, [[`${SERIES}.9`, true]])
})

test('a refused position is an error, not a reason to try again', async (t) => {
  const fake = await startFake(t, {
    'events.stream': (_, response) => {
      response.writeHead(400, { 'content-type': 'application/json' })
      response.end(JSON.stringify({ error: { code: 'VALIDATION_FAILED', message: 'since: not a position' } }))
    },
  })
  const client = createClient({ url: fake.url, apiKey: KEY, org: ORG })
  await assert.rejects(client.followOrg({ since: 'x' }).next(), { code: 'VALIDATION_FAILED' })
})

test('what `onReady` throws ends the iteration', async (t) => {
  let connections = 0
  const fake = await startFake(t, {
    'events.stream': (_, response) => {
      connections++
      sendAndBreak(response, first('ready', 1))
    },
  })
  const client = createClient({ url: fake.url, apiKey: KEY, org: ORG })
  const mine = new RangeError('no such table')
  const onReady = () => {
    throw mine
  }
  await assert.rejects(client.followOrg({ onReady, signal: AbortSignal.timeout(20_000) }).next(), mine)
  assert.equal(connections, 1)
})
