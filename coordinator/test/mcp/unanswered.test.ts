import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { after, before, test } from 'node:test'
import { createLog } from '@windlass/shared/log.ts'
import type { Asking } from '../../mcp/asking.ts'
import { createMcp } from '../../mcp/server.ts'
import type { Surface } from '../../mcp/surface.ts'
import { aCoordinatorOfItsOwn, type TestCoordinator } from '../_kit/coordinator.ts'
import { OLD_ERA, post } from '../_kit/mcp.ts'

// The library answers a batch when it has a response to each of its requests. Whatever has none must end all the same.

let c: TestCoordinator

before(async () => {
  c = await aCoordinatorOfItsOwn()
})
after(() => c.stop())

const call = (id: unknown, more: object = {}) => ({
  jsonrpc: '2.0',
  id,
  method: 'tools/call',
  params: { name: 'list_workflows', arguments: {}, ...more },
})
const cancelled = (requestId: unknown) => ({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId } })
const byText = (one: unknown, other: unknown) => String(one).localeCompare(String(other))
const idsOf = (body: unknown) =>
  [body]
    .flat()
    .map((each) => (each as { id: unknown }).id)
    .toSorted(byText)

test('a request that a message of its own batch cancels is answered like the others', async () => {
  const batches = [
    [call(1), cancelled(1)],
    [cancelled(1), call(1), call(2), cancelled(2)],
    [call('a'), call(1), cancelled('a'), cancelled(1), cancelled('nobody')],
    [call(1, { _meta: { pad: 'x'.repeat(100_000) } }), call(2), cancelled(1)],
    [call(1), { ...cancelled(1), params: {} }, { ...cancelled(1), params: { requestId: null } }],
  ]
  for (const version of [undefined, '2025-03-26', '2025-06-18', OLD_ERA])
    for (const batch of batches) {
      const { status, body } = await post(c, batch, version === undefined ? {} : { 'mcp-protocol-version': version })
      const asked = batch.flatMap((each) => ('id' in each ? [each.id] : []))
      assert.deepEqual([status, idsOf(body)], [200, asked.toSorted(byText)], JSON.stringify(body).slice(0, 300))
      for (const each of [body].flat()) assert.ok(each.result, JSON.stringify(each))
    }
})

test('a batch is refused when two of its requests have one id', async () => {
  for (const batch of [
    [call(1), call(1)],
    [call('a'), call(2), { jsonrpc: '2.0', id: 'a', method: 'ping' }],
  ]) {
    const { status, body } = await post(c, batch)
    assert.deepEqual([status, body.error.code], [400, -32_600])
    assert.match(body.error.message, /the same id/)
  }
  const { status, body } = await post(c, [call(1), call('1')])
  assert.deepEqual([status, idsOf(body)], [200, [1, '1']])
})

test('whatever else a batch holds, it is answered', async () => {
  const response = { jsonrpc: '2.0', id: 1, result: {} }
  const failure = { jsonrpc: '2.0', id: 1, error: { code: -32_000, message: 'no' } }
  const initialize = { jsonrpc: '2.0', id: 9, method: 'initialize', params: {} }
  const progress = { jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken: 1, progress: 1 } }
  const batches: [batch: unknown[], status: number][] = [
    [[call(null)], 400],
    [[call(1), { ...call(1), id: undefined }], 200],
    [[call(1), response, failure], 200],
    [[call(1), progress, cancelled(1)], 200],
    [[call(1), { jsonrpc: '2.0', id: 2, method: 'notifications/cancelled', params: { requestId: 1 } }], 200],
    [[response, failure], 202],
    [[cancelled(1)], 202],
    [[call(1), initialize, cancelled(9)], 200],
    [[], 400],
  ]
  for (const [batch, expected] of batches) {
    const { status } = await post(c, batch)
    assert.equal(status, expected, JSON.stringify(batch))
  }
})

/** The protocol over a surface of the test's own. */
function over(surface: Partial<Surface>) {
  const log = createLog({ part: 'test' }, 'error')
  const asking: Partial<Asking> = {
    gone: new AbortController().signal,
    assertConnected: () => {},
    stay: () => Promise.resolve(),
    deps: { log, config: { strict: true } } as Asking['deps'],
  }
  const deadlines = { messagesMs: 100, requestMs: 300 }
  const mcp = createMcp({ surface: surface as Surface, version: '1', log, deadlines })
  const headers = { 'mcp-protocol-version': OLD_ERA, 'content-type': 'application/json' }
  return (message: unknown) => mcp.answer({ headers, message, asking: asking as Asking })
}

const LISTS = ['tools/list', 'resources/list', 'tools/list'].map((method, id) => ({ jsonrpc: '2.0', id, method }))

test('what has not come to its end in time is refused, and so is what stands behind it', async () => {
  const { status, text } = await over({ tools: () => '[]', resources: () => new Promise(() => {}) })(LISTS)
  const answers = JSON.parse(text) as { id: number; error?: { message: string; data: { code: string } } }[]
  assert.deepEqual(
    [status, answers.map(({ error }) => error?.data.code)],
    [200, [undefined, 'UNAVAILABLE', 'UNAVAILABLE']],
  )
  assert.match(answers[1]!.error!.message, /not come to its end within 0\.1 s/)
  assert.match(answers[2]!.error!.message, /was not begun/)
})

test('what the library leaves without an answer is UNAVAILABLE in the end', async () => {
  // The library fails to print a response, and answers nobody then.
  const templates = [{ uriTemplate: 1n }] as unknown as Surface['templates']
  const asked = over({ templates })([{ jsonrpc: '2.0', id: 1, method: 'resources/templates/list' }])
  await assert.rejects(asked, { code: 'UNAVAILABLE', message: /no answer after 0\.3 s/ })
})

test('clients that leave a batch that cancels itself keep no seat from the next', async () => {
  const { host, hostname, port } = new URL(c.url)
  const batch = JSON.stringify([call(1, { _meta: { pad: 'x'.repeat(100_000) } }), cancelled(1)])
  const begin = () => {
    const socket = connect(Number(port), hostname)
    const head = [
      'POST /mcp/v1 HTTP/1.1',
      `host: ${host}`,
      `authorization: Bearer ${c.apiKey}`,
      'content-type: application/json',
      `content-length: ${Buffer.byteLength(batch)}`,
    ]
    socket.on('error', () => {})
    socket.write(`${head.join('\r\n')}\r\n\r\n${batch}`)
    return socket
  }
  const sockets = Array.from({ length: 12 }, begin)
  assert.equal((await post(c, batch)).status, 200)
  for (const socket of sockets) socket.destroy()
  assert.equal((await post(c, batch)).status, 200)
})
