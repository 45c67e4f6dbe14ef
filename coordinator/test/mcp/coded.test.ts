import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { newId } from '@windlass/shared/ids.ts'
import { aCoordinator, type TestCoordinator } from '../_kit/coordinator.ts'
import { ask, META, post } from '../_kit/mcp.ts'

let c: TestCoordinator

const PING = { jsonrpc: '2.0', id: 7, method: 'ping' }
const DISCOVER = { jsonrpc: '2.0', id: 7, method: 'server/discover', params: { _meta: META } }

before(async () => {
  c = await aCoordinator()
})
after(() => c.stop())

test('every error of the protocol carries our code, and an answer that is no success a request id', async () => {
  const initialize = { jsonrpc: '2.0', id: 1, method: 'initialize' }
  const gone = { uri: `windlass://runs/${newId('run')}/events` }
  const answers: [code: string, status: number, given: Awaited<ReturnType<typeof post>>][] = [
    ['VALIDATION_FAILED', 400, await post(c, '{"jsonrpc":')],
    ['VALIDATION_FAILED', 400, await post(c, {})],
    [
      'VALIDATION_FAILED',
      400,
      await post(
        c,
        Array.from({ length: 101 }, () => PING),
      ),
    ],
    ['VALIDATION_FAILED', 400, await post(c, DISCOVER)],
    ['VALIDATION_FAILED', 400, await post(c, PING, { 'mcp-protocol-version': '1999-01-01' })],
    // No UTF-8.
    ['VALIDATION_FAILED', 400, await post(c, PING, { 'mcp-protocol-version': '\u00e9' })],
    ['VALIDATION_FAILED', 406, await post(c, PING, { accept: 'text/html' })],
    ['VALIDATION_FAILED', 200, await post(c, initialize)],
    ['VALIDATION_FAILED', 200, await post(c, [PING, { ...PING, id: 8, method: 'tools/call' }])],
    ['NOT_FOUND', 404, await ask(c, 'no/such')],
    ['NOT_FOUND', 404, await ask(c, 'subscriptions/listen')],
    ['NOT_FOUND', 200, await ask(c, 'no/such', {}, 'old')],
    ['NOT_FOUND', 200, await ask(c, 'tools/call', { name: 'no_such_tool' }, 'old')],
    ['NOT_FOUND', 200, await ask(c, 'resources/read', gone, 'old')],
  ]
  for (const [code, status, { status: found, headers, body }] of answers) {
    const error = [body].flat().find((each) => each.error)?.error
    assert.deepEqual([found, error?.data?.code], [status, code], JSON.stringify(body))
    assert.ok(headers.get('x-request-id'))
  }
})

test('who takes no JSON is told that every answer is JSON', async () => {
  const { body } = await post(c, PING, { accept: 'text/html' })
  assert.match(body.error.message, /Every answer is `application\/json`/)
})
