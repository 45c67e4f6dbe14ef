import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { SseAnswer } from '../../api/call.ts'
import { tool } from '../_kit/mcp.ts'
import { untilPolled } from '../_kit/until.ts'
import { RUN, type StubServer, envelope, startStub } from './stub-server.ts'

let server: StubServer
/** Ends what waits. */
let end = () => {}
let waiting = 0

before(async () => {
  const held = (gone?: AbortSignal) =>
    new Promise<void>((resolve) => {
      end = resolve
      gone?.addEventListener('abort', () => resolve())
    })
  server = await startStub({
    limitWaiting: 2,
    strict: false,
    handlers: {
      'runs.stream': () => new SseAnswer(({ gone }) => held(gone)),
      'runs.events': async ({ input }) => {
        if (!input['waitMs']) return { events: [] }
        waiting++
        await held()
        return { events: [] }
      },
    },
  })
})
after(() => server.close())

const headers = { authorization: 'Bearer owner' }
const events = (query = '') => fetch(`${server.url}/v1/runs/${RUN}/events${query}`, { headers })
const stream = (signal?: AbortSignal) =>
  fetch(`${server.url}/v1/runs/${RUN}/events/stream`, { headers, signal: signal ?? null })

test('a caller has no more streams and waiting requests open than its limit, and the others go on', async () => {
  const leaving = new AbortController()
  const streams = [await stream(leaving.signal), await stream(leaving.signal)]
  assert.deepEqual(
    streams.map(({ status }) => status),
    [200, 200],
  )
  for (const refused of [await stream(), await events('?waitMs=20000')]) {
    assert.equal(refused.status, 429)
    assert.equal(refused.headers.get('retry-after'), '1')
    const { code, detail } = await envelope(refused)
    assert.deepEqual([code, detail?.['scope'], detail?.['limit']], ['RATE_LIMITED', 'waiting', 2])
  }
  assert.equal((await events()).status, 200, 'what does not wait')
  end()
  await streams[1]!.text()
  const again = await stream(leaving.signal)
  assert.equal(again.status, 200, 'one has ended')
  end()
  leaving.abort()
})

test('calls over MCP that wait count as well, and those that do not are served', async () => {
  const leaving = new AbortController()
  const base = { url: server.url, apiKey: 'owner' }
  const open = await untilPolled('a place', async () => {
    const answer = await stream(leaving.signal)
    return answer.status === 200 && answer
  })
  const call = (waitMs: number) => tool(base, 'get_run_output', { run: RUN, waitMs })
  waiting = 0
  const waits = call(20_000)
  await untilPolled('the first to wait', () => waiting === 1)
  const refused = await call(20_000)
  assert.deepEqual([refused.isError, refused.value.error.code], [true, 'RATE_LIMITED'])
  assert.equal((await events('?waitMs=20000')).status, 429)
  assert.equal((await call(0)).isError, false)
  end()
  await waits
  leaving.abort()
  await open.text().catch(() => undefined)
})
