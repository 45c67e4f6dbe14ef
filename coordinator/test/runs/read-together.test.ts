import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { newId } from '@windlass/shared/ids.ts'
import { ops } from '@windlass/shared/ops/index.ts'
import { anOrg, aCoordinator, aRun, refusal, runOf, type TestCoordinator } from '../_kit/coordinator.ts'
import { aWorkflow } from '../_kit/workflow.ts'

let c: TestCoordinator

before(async () => {
  c = await aCoordinator()
  await aWorkflow(c, { slug: 'any' })
})
after(() => c.stop())

test('of many who look at once each gets the run that was asked for, or hears that it is not there', async () => {
  const runs = await Promise.all(Array.from({ length: 10 }, (_, i) => aRun(c, { workflow: 'any', tags: [`n${i}`] })))
  const stranger = await anOrg(c)
  const look = async (i: number) => {
    const run = runs[i % runs.length]!
    if (i % 7 === 0) return assert.rejects(runOf(c, newId('run')), refusal('NOT_FOUND'))
    // In the same statement as its owner, perhaps.
    if (i % 5 === 0)
      return assert.rejects(c.call(ops.runs.get, { run: run.id }, stranger), refusal('NOT_FOUND', undefined))
    assert.deepEqual(await runOf(c, run.id), run)
  }
  await Promise.all(Array.from({ length: 200 }, (_, i) => look(i)))
})

test('who has changed a run sees it changed', async () => {
  const { id } = await aRun(c, { workflow: 'any' })
  const others = Array.from({ length: 50 }, () => runOf(c, id))
  await c.call(ops.runs.cancel, { run: id })
  assert.equal((await runOf(c, id)).status, 'cancelled')
  await Promise.all(others)
})
