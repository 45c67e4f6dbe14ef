import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ops } from '@windlass/shared/ops/index.ts'
import { anAgent } from '../_kit/agent.ts'
import { aCoordinator, aCoordinatorOfItsOwn, aRun, refusal, runOf } from '../_kit/coordinator.ts'
import { borrowCoordinator, keepCoordinator } from '../_kit/shared-coordinator.ts'
import { until } from '../_kit/until.ts'
import { aWorkflow } from '../_kit/workflow.ts'

test('all in a process share one coordinator, and none sees what is the others', async () => {
  const [one, two] = await Promise.all([aCoordinator(), aCoordinator()])
  assert.equal(one.url, two.url)
  await Promise.all([one, two].map((c) => aWorkflow(c, { slug: 'same' })))
  const { id } = await aRun(one, { workflow: 'same' })
  await assert.rejects(runOf(two, id), refusal('NOT_FOUND'))
  await assert.rejects(two.call(ops.runs.list, { org: one.org }), refusal('NOT_FOUND'))
  assert.deepEqual(await (await anAgent(two)).poll(1, 0), [])
  await two.stop()
  assert.equal((await runOf(one, id)).status, 'queued')
  await one.stop()
  await assert.rejects(fetch(one.url))
})

test('who leaves something in its memory is told so, and the next one has a new coordinator', async (t) => {
  const group = keepCoordinator()
  t.after(() => group.end())
  const start = () => aCoordinatorOfItsOwn()
  const first = await borrowCoordinator(start, 0)
  await first.giveBack()
  const again = await borrowCoordinator(start, 0)
  assert.equal(again.coordinator, first.coordinator)

  const poll = (await anAgent(again.coordinator)).poll(1, 20_000).catch(() => undefined)
  await until('the poll to wait', () => again.coordinator.deps.dispatchers.waiting() === 1)
  await assert.rejects(again.giveBack(), /leaves 1 polls/)
  await poll
  const next = await borrowCoordinator(start, 0)
  assert.notEqual(next.coordinator, again.coordinator)
  // One that is cut off gives nothing back.
  await group.nextFile()
  const last = await borrowCoordinator(start, 0)
  assert.notEqual(last.coordinator, next.coordinator)
  await last.giveBack()
})
