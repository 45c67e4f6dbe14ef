import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createLog } from '@windlass/shared/log.ts'
import type { Asking } from '../../mcp/asking.ts'
import { createMcp } from '../../mcp/server.ts'
import type { Surface } from '../../mcp/surface.ts'
import { OLD_ERA } from '../_kit/mcp.ts'

test('between the messages of a batch others have their turn, also when nothing is waited for', async () => {
  const seen: string[] = []
  const tools = () => {
    seen.push('list')
    setImmediate(() => seen.push('others'))
    return []
  }
  const surface: Partial<Surface> = { tools, templates: [] }
  const mcp = createMcp({ surface: surface as Surface, version: '1', log: createLog({ part: 'test' }, 'error') })
  const asking = { gone: new AbortController().signal } as Asking
  const message = [1, 2, 3].map((id) => ({ jsonrpc: '2.0', id, method: 'tools/list' }))
  const headers = { 'mcp-protocol-version': OLD_ERA, 'content-type': 'application/json' }
  const { status } = await mcp.answer({ headers, message, asking })
  assert.equal(status, 200)
  assert.deepEqual(seen.slice(0, 5), ['list', 'others', 'list', 'others', 'list'])
})
