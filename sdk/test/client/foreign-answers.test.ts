// A proxy answers in place of the service while a run is followed.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { answerAs, FOREIGN } from '@windlass/shared/test/_kit/foreign.ts'
import { ApiError, createClient } from '../../client/index.ts'
import { isPassing } from '../../client/patience.ts'
import { KEY, startFake } from '../_kit/fake-service.ts'
import type { Answerer } from '../_kit/fake-service.ts'
import { aRun, events, sendSseHead, sendStream } from '../_kit/samples.ts'

const run = aRun()

async function followed(url: string, onReconnect?: (why: string) => void) {
  const client = createClient({ url, apiKey: KEY })
  const signal = AbortSignal.timeout(60_000)
  return Array.fromAsync(client.follow(run.id, { signal, onReconnect }))
}

test('what is followed goes on behind whatever a proxy answers in between', async (t) => {
  t.mock.method(Math, 'random', () => 0)
  const left = [...FOREIGN]
  const log = events(['lifecycle', 'run.running'], ['lifecycle', 'run.completed'])
  const stream: Answerer = (args, response) => {
    const foreign = left.shift()
    return foreign ? answerAs(response, foreign) : sendStream(response, log, args)
  }
  const { url } = await startFake(t, { 'runs.stream': stream })
  const whys: string[] = []
  assert.deepEqual(await followed(url, (why) => whys.push(why)), log)
  assert.deepEqual(
    whys.map((why) => / answered (\d+) with /.exec(why)?.[1]),
    FOREIGN.map(({ status }) => String(status)),
  )
})

test('an address that has moved for good is told at once, and one that leads elsewhere for now is not', async (t) => {
  t.mock.method(Math, 'random', () => 0)
  const location = 'https://elsewhere.example/'
  let [status, asked] = [302, 0]
  const { url } = await startFake(t, {
    'runs.stream': (_, response) => {
      if (++asked > 3) status = 301
      response.writeHead(status, { location }).end()
    },
  })
  await assert.rejects(followed(url), { status: 301, message: /redirects to https:\/\/elsewhere\.example\/; use that/ })
  assert.equal(asked, 4)
})

test('an event that nobody can read ends what is followed', async (t) => {
  const { url, asked } = await startFake(t, {
    'runs.stream': (_, response) => {
      sendSseHead(response)
      response.end('data: {"no"\n\n')
    },
  })
  await assert.rejects(followed(url), { code: 'BAD_ANSWER', message: /sent an event that is not JSON/ })
  assert.equal(asked.length, 1)
})

test('a refusal of the service itself does not pass, though its code is of a later version', () => {
  for (const status of [400, 401, 403, 404, 410])
    assert.equal(isPassing(new ApiError('no', { status, code: 'OF_A_LATER_VERSION' })), false)
  assert.equal(isPassing(new ApiError('no', { status: 404, code: 'BAD_ANSWER' })), true)
})
