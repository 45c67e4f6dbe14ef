// A batch may take minutes, when its inputs take long to judge; so may a deploy behind others of its org.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { Fault } from '@windlass/shared/errors.ts'
import { newId } from '@windlass/shared/ids.ts'
import type { Acting, LongCall } from '../../actor.ts'
import { startBatch } from '../../runs/batch.ts'
import { ClientGone } from '../../unforeseen.ts'
import { createWorkflow } from '../../workflows/deploy.ts'
import { aCoordinator, type TestCoordinator, refusal } from '../_kit/coordinator.ts'
import { aWorkflow } from '../_kit/workflow.ts'
import { filesOf } from '../_kit/workflow-files.ts'

let c: TestCoordinator

before(async () => (c = await aCoordinator()))
after(() => c.stop())

/** A call whose credential serves for so many looks. */
function callThatStays(looks: number): LongCall {
  const caller: Acting = {
    kind: 'key',
    id: newId('key'),
    name: 'to be revoked',
    orgId: c.orgId,
    org: c.org,
    role: 'owner',
    scopes: [],
    via: 'rest',
    requestId: newId('req'),
  }
  return { caller, stay: () => (looks-- > 0 ? Promise.resolve() : Promise.reject(new Fault('UNAUTHENTICATED'))) }
}

test('what a batch has not begun when the credential is lost is refused, and what it has begun is told', async () => {
  const { slug } = await aWorkflow(c)
  const items = Array.from({ length: 200 }, (_, input) => ({ input, tags: [], priority: 0, delayMs: 0 }))
  const results = await startBatch(c.deps, callThatStays(100), { org: c.org, workflow: slug, items })
  assert.deepEqual(
    results.map((result) => ('run' in result ? 'started' : result.error.code)),
    items.map((_, i) => (i < 100 ? 'started' : 'UNAUTHENTICATED')),
  )
  const [{ count }] = await c.db<[{ count: number }]>`select count(*)::int as count from runs where org_id = ${c.orgId}`
  assert.equal(count, 100)
})

test('that a client has gone amid its batch is no fault of ours', async (t) => {
  const { slug } = await aWorkflow(c)
  const { mock } = t.mock.method(c.deps.log, 'error', () => {})
  const call = { ...callThatStays(1), gone: AbortSignal.abort(new ClientGone()) }
  const items = [{ input: 1, tags: [], priority: 0, delayMs: 0, idempotencyKey: 'gone' }]
  await startBatch(c.deps, call, { org: c.org, workflow: slug, items })
  assert.deepEqual(
    mock.calls.map(({ arguments: [name] }) => name),
    [],
  )
})

test('a workflow is not made for somebody who lost the credential while it was built', async () => {
  const files = filesOf({ 'workflow.jsonc': '{ "slug": "late" }', 'index.ts': 'export const run = () => 1' })
  await assert.rejects(createWorkflow(c.deps, callThatStays(0), files), refusal('UNAUTHENTICATED'))
  const rows = await c.db`select 1 from workflows where org_id = ${c.orgId} and slug = 'late'`
  assert.equal(rows.length, 0)
})
