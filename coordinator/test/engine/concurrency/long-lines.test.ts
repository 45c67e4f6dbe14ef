import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { ops } from '@windlass/shared/ops/index.ts'
import { admit, MOST_ADMITTED } from '../../../engine/store/concurrency.ts'
import { aCoordinator, aRun, type TestCoordinator } from '../../_kit/coordinator.ts'
import { aWorkflow } from '../../_kit/workflow.ts'

let c: TestCoordinator

before(async () => {
  c = await aCoordinator()
})
after(() => c.stop())

test('a line with much room is let in whole, by statements that look at few each', async () => {
  const { id: group, slug } = await aWorkflow(c, { descriptor: { concurrency: 1 } })
  const first = await aRun(c, { workflow: slug })
  const limit = 3 * MOST_ADMITTED
  const others = await Promise.all(Array.from({ length: limit }, () => aRun(c, { workflow: slug })))
  const ids = others.map(({ id }) => id)
  // As if their version had allowed more.
  await c.db`update concurrency_waiters set slots = ${limit} where run_id = any(${ids})`
  const notForGood = new Error('not for good')
  const tried = c.db.begin(async (tx) => {
    await tx`delete from concurrency_slots where run_id = ${first.id}`
    assert.equal((await admit(tx, [group])).length, MOST_ADMITTED)
    throw notForGood
  })
  await assert.rejects(tried, notForGood)
  await c.call(ops.runs.cancel, { run: first.id })
  const [{ queued }] = await c.db<[{ queued: number }]>`
    select count(*)::int as queued from run_queue where run_id = any(${ids})`
  assert.equal(queued, limit)
})
