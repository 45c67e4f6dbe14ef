import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { newId, type OrgId } from '@windlass/shared/ids.ts'
import { createHandlers } from '../../api/index.ts'
import type { Asking } from '../../mcp/asking.ts'
import { createMcp } from '../../mcp/server.ts'
import { createSurface } from '../../mcp/surface.ts'
import { aCoordinator, type TestCoordinator } from '../_kit/coordinator.ts'
import { OLD_ERA } from '../_kit/mcp.ts'

let c: TestCoordinator

before(async () => {
  c = await aCoordinator()
})
after(() => c.stop())

const asking = (orgId: OrgId): Asking => ({
  caller: { kind: 'key', id: newId('key'), name: 'test', orgId, org: c.org, role: 'owner', scopes: [] },
  deps: c.deps,
  requestId: newId('req'),
  address: '127.0.0.1',
  peer: '127.0.0.1',
  base: 'http://127.0.0.1',
  keyInHeader: () => undefined,
  bytes: 0,
  wait: () => () => {},
  stay: () => Promise.resolve(),
  gone: new AbortController().signal,
  assertConnected: () => {},
})

test('a tool that does not come to its end is answered in time, and the model told to look first', async () => {
  let fail = (_error: Error) => {}
  const never = new Promise<never>((_resolve, reject) => (fail = reject))
  const handlers = createHandlers(c.deps)
  const slow = { ...handlers, workflows: { ...handlers.workflows, list: () => never } }
  const surface = createSurface(slow, { mostMs: 20 })
  const { isError, content } = await surface.call(asking(c.orgId), 'list_workflows', {})
  const { error, next } = JSON.parse(content[0]!.text) as { error: { code: string; message: string }; next: string }
  assert.deepEqual([isError, error.code], [true, 'UNAVAILABLE'])
  assert.match(error.message, /not come to its end within 0\.02 s/)
  assert.match(next, /look at what it was to do/)
  // Its failure afterwards is nobody's any more, and ends no process.
  fail(new Error('late'))
  const quick = await createSurface(slow).call(asking(c.orgId), 'list_runs', {})
  assert.equal(quick.isError, undefined)
})

/** The answers to a batch of two calls of a tool that does not come to its end, and how many were begun. */
async function batchOf(more: Partial<Asking>) {
  let begun = 0
  const handlers = createHandlers(c.deps)
  const list = () => {
    begun++
    return new Promise<never>(() => {})
  }
  const surface = createSurface({ ...handlers, workflows: { ...handlers.workflows, list } })
  const deadlines = { messagesMs: 1000, requestMs: 60_000 }
  const mcp = createMcp({ surface, version: '1', log: c.deps.log, deadlines })
  const params = { name: 'list_workflows', arguments: {} }
  const message = [1, 2].map((id) => ({ jsonrpc: '2.0', id, method: 'tools/call', params }))
  const headers = {
    'mcp-protocol-version': OLD_ERA,
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
  }
  const { text } = await mcp.answer({ headers, message, asking: { ...asking(c.orgId), ...more } })
  type Answer = { result?: { content: { text: string }[] }; error?: { code: number; message: string } }
  return { begun: () => begun, answers: JSON.parse(text) as Answer[] }
}

test('a call of a batch that was begun has a result when the time is over, which says to look first', async () => {
  const { begun: count, answers } = await batchOf({})
  const begun = count()
  assert.ok(begun > 0)
  for (const { result } of answers.slice(0, begun)) assert.match(result!.content[0]!.text, /look at what it was to do/)
  for (const { error } of answers.slice(begun)) assert.match(error!.message, /was not begun/)
})

test('a call whose credential cannot be looked at in time is refused, and not begun later', async () => {
  const look = Promise.withResolvers<void>()
  const answered = await batchOf({ stay: () => look.promise })
  look.resolve()
  await new Promise((resolve) => setImmediate(resolve))
  assert.equal(answered.begun(), 0)
  const { answers } = answered
  const errors = answers.map(({ error }) => error!)
  assert.deepEqual(
    errors.map(({ code }) => code),
    // Not -32600, by which a client knows that it was wrong itself.
    [-32_603, -32_603],
  )
  for (const { message } of errors) assert.match(message, /was not begun/)
})
