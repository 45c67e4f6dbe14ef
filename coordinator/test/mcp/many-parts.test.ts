import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { hasTooManyParts } from '../../mcp/many-parts.ts'
import { aCoordinator, type TestCoordinator } from '../_kit/coordinator.ts'
import { post, tool } from '../_kit/mcp.ts'
import { aWorkflow } from '../_kit/workflow.ts'

let c: TestCoordinator

before(async () => {
  c = await aCoordinator()
  await aWorkflow(c, { slug: 'any' })
})
after(() => c.stop())

const names = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, n) => [`n${n}`, 1]))
const request = (params: Record<string, unknown>) => ({ jsonrpc: '2.0', id: 1, method: 'ping', params })

test('names and items count wherever the library looks, and not within the values of arguments', () => {
  assert.equal(hasTooManyParts([request(names(3990))]), false)
  assert.equal(hasTooManyParts([request(names(4000))]), true)
  assert.equal(hasTooManyParts([request({ _meta: [{ deep: names(4000) }] })]), true)
  assert.equal(hasTooManyParts([request({ arguments: names(4000) })]), true)
  assert.equal(hasTooManyParts([request({ arguments: { input: names(100_000) } })]), false)
  assert.equal(hasTooManyParts([{ ...request({}), ...names(4000) }]), true)
  assert.equal(hasTooManyParts(Array.from({ length: 100 }, () => request(names(20)))), false)
  assert.equal(hasTooManyParts(Array.from({ length: 100 }, () => request(names(50)))), true)
  const items = (count: number) => Array.from({ length: count }, () => 1)
  assert.equal(hasTooManyParts([request({ clientInfo: { icons: items(3990) } })]), false)
  assert.equal(hasTooManyParts([request({ clientInfo: { icons: items(4000) } })]), true)
  assert.equal(hasTooManyParts([request({ arguments: { input: items(100_000) } })]), false)
  for (const message of [null, 1, [names(4001)], { params: null }, { params: [1] }])
    assert.equal(hasTooManyParts([message]), Array.isArray(message))
})

// One such request a second stopped a coordinator: 120,000 names or 520,000 items were held against its schemas.
test('a message with very many parts is refused before the library looks at it', async () => {
  const many = names(20_000)
  const clientInfo = { name: 'a', version: '1' }
  const initialize = { protocolVersion: '2025-11-25', capabilities: many, clientInfo }
  const withIcons = { ...initialize, capabilities: {}, clientInfo: { ...clientInfo, icons: Array(520_000).fill(1) } }
  for (const [method, params] of [
    ['initialize', initialize],
    ['initialize', withIcons],
    ['tools/list', { _meta: many }],
    ['tools/call', { name: 'get_run', arguments: many }],
  ] as const) {
    const { status, body } = await post(c, { jsonrpc: '2.0', id: 1, method, params })
    assert.equal(status, 400, method)
    assert.equal(body.error.code, -32_600)
    assert.match(body.error.message, /more than 4,000 names and items/)
  }
  const long = 'x'.repeat(300_000)
  for (const message of [
    { id: long, method: 'ping' },
    { id: 1, method: long },
    { id: 1, method: 'tools/call', params: { name: long } },
    { id: 1, method: 'tools/call', params: { name: 'get_run', arguments: { [long]: 1 } } },
    { id: 1, method: 'resources/read', params: { uri: `windlass://runs/${long}` } },
  ]) {
    const { status, body } = await post(c, { jsonrpc: '2.0', ...message })
    assert.equal(status, 400, JSON.stringify(message).slice(0, 60))
    assert.match(body.error.message, /more than 256 KiB of names and texts/)
    assert.ok(JSON.stringify(body).length < 1000)
  }
  const input = { ...names(20_000), long }
  const { isError } = await tool(c, 'trigger_now', { workflow: 'any', input })
  assert.equal(isError, false)
})
