import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Surface } from '../../mcp/surface.ts'
import { post } from '../_kit/mcp.ts'
import { startStub } from './stub-server.ts'

test('however many requests of one org to MCP come at once, one begins in a turn of the event loop', async () => {
  let inTurn = 0
  let most = 0
  let asked = 0
  const resources = () => {
    asked += 1
    if (++inTurn === 1) setImmediate(() => (inTurn = 0))
    most = Math.max(most, inTurn)
    return Promise.resolve([])
  }
  const surface: Partial<Surface> = { resources, templates: [], mostBytes: () => 1024 * 1024 }
  const server = await startStub({ surface: surface as Surface })
  try {
    const base = { url: server.url, apiKey: 'viewer' }
    const list = { jsonrpc: '2.0', id: 1, method: 'resources/list' }
    // Loads what stands behind it.
    await post(base, list)
    const answers = await Promise.all(Array.from({ length: 60 }, () => post(base, list)))
    assert.ok(answers.every(({ status, body }) => status === 200 && Array.isArray(body.result.resources)))
    assert.equal(asked, 61)
    // What begins with no other before it does so beside the first of those who have waited.
    assert.ok(most <= 2, `${most} have begun in one turn`)
  } finally {
    await server.close()
  }
})
