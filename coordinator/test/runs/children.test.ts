import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { ops } from '@windlass/shared/ops/index.ts'
import { anAgent } from '../_kit/agent.ts'
import { aCoordinator, aRun, refusal, type TestCoordinator } from '../_kit/coordinator.ts'
import { aParkedRun, call, type Crew } from '../_kit/waiting.ts'
import { aWorkflow } from '../_kit/workflow.ts'

let c: TestCoordinator
let crew: Crew

before(async () => {
  c = await aCoordinator()
  await aWorkflow(c, { slug: 'parent' })
  await aWorkflow(c, { slug: 'child' })
  const agent = await anAgent(c)
  crew = { c, agent, link: await agent.connect() }
})
after(async () => {
  crew.agent.close()
  await c.stop()
})

const children = (run: string, query: object = {}) => c.call(ops.runs.children, { run: run, ...query })

test('the children of a run are listed newest first, in pages, and by status', async () => {
  const asks = Array.from({ length: 5 }, () => call('child'))
  const { run } = await aParkedRun(crew, { workflow: 'parent' }, ...asks)
  const all = (await children(run)).runs
  assert.equal(all.length, 5)
  assert.ok(
    all.every((child) => child.parentRunId === run && child.rootRunId === run && child.trigger.kind === 'child'),
  )
  const ids = all.map((child) => child.id)
  assert.deepEqual(ids, ids.toSorted().toReversed())
  const first = await children(run, { limit: 3 })
  const second = await children(run, { limit: 3, cursor: first.nextCursor! })
  assert.deepEqual(
    [...first.runs, ...second.runs].map(({ id }) => id),
    ids,
  )
  assert.equal(second.nextCursor, null)

  await c.call(ops.runs.cancel, { run: ids[2]! })
  assert.deepEqual(
    (await children(run, { status: ['cancelled'] })).runs.map(({ id }) => id),
    [ids[2]],
  )
  assert.equal((await children(run, { status: ['queued'] })).runs.length, 4)
  await assert.rejects(children(run, { cursor: 'x' }), refusal('VALIDATION_FAILED', 'cursor'))
  await c.db`delete from run_queue where pool_id = ${c.poolId}`
})

test('a run that has called none has none', async () => {
  const { id } = await aRun(c, { workflow: 'child' })
  assert.deepEqual(await children(id), { runs: [], nextCursor: null })
})
