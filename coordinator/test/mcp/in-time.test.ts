import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { newId, type OrgId } from '@windlass/shared/ids.ts'
import { createHandlers } from '../../api/index.ts'
import type { Asking } from '../../mcp/asking.ts'
import { createSurface } from '../../mcp/surface.ts'
import { aCoordinator, type TestCoordinator } from '../_kit/coordinator.ts'

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
