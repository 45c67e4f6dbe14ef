import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Fault } from '@windlass/shared/errors.ts'
import { createLog } from '@windlass/shared/log.ts'
import type { Asking } from '../../mcp/asking.ts'
import { createMcp } from '../../mcp/server.ts'
import type { Surface } from '../../mcp/surface.ts'
import { OLD_ERA } from '../_kit/mcp.ts'

/** The answers to a batch that asks for the list of tools so often. */
async function listed(...asked: Parameters<typeof answerTo>) {
  return JSON.parse(await answerTo(...asked)) as { error?: { message: string } }[]
}

async function answerTo(tools: Surface['tools'], times: number, stay = () => Promise.resolve()): Promise<string> {
  const surface: Partial<Surface> = { tools, templates: [] }
  const log = createLog({ part: 'test' }, 'error')
  const mcp = createMcp({ surface: surface as Surface, version: '1', log })
  const asking: Partial<Asking> = {
    gone: new AbortController().signal,
    assertConnected: () => {},
    stay,
    deps: { log, config: { strict: true } } as Asking['deps'],
  }
  const message = Array.from({ length: times }, (_, id) => ({ jsonrpc: '2.0', id, method: 'tools/list' }))
  const headers = { 'mcp-protocol-version': OLD_ERA, 'content-type': 'application/json' }
  const answer = await mcp.answer({ headers, message, asking: asking as Asking })
  assert.equal(answer.status, 200)
  return answer.text
}

test('between the messages of a batch others have their turn, also when nothing is waited for', async () => {
  const seen: string[] = []
  const tools = () => {
    seen.push('list')
    setImmediate(() => seen.push('others'))
    return '[]'
  }
  await listed(tools, 3)
  assert.deepEqual(seen.slice(0, 5), ['list', 'others', 'list', 'others', 'list'])
})

test('lists of tools in a batch are bounded together', async () => {
  const tool = { name: 'long', description: 'x'.repeat(300_000), inputSchema: { type: 'object' } }
  const answers = await listed(() => JSON.stringify([tool]), 5)
  const refused = answers.filter(({ error }) => error)
  assert.equal(refused.length, 2)
  assert.match(refused[0]!.error!.message, /1000000 characters together in a batch/)
})

test('a list of tools is handed on as it was printed, and not printed anew', async () => {
  const text = '[ {"name":"spaced",  "inputSchema":{"type":"object"} } ]'
  assert.ok((await answerTo(() => text, 2)).split(text).length === 3)
})

test('a message whose turn comes when the credential has been revoked is refused', async () => {
  let looks = 0
  const stay = () => (++looks > 2 ? Promise.reject(new Fault('UNAUTHENTICATED')) : Promise.resolve())
  let acts = 0
  const answers = await listed(() => (acts++, '[]'), 4, stay)
  assert.equal(acts, 2)
  assert.deepEqual(
    answers.map(({ error }) => error !== undefined),
    [false, false, true, true],
  )
})
