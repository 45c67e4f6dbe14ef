import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { Cause } from '@windlass/shared/model/why.ts'
import { ops } from '@windlass/shared/ops/index.ts'
import { aRunningAgent, start } from '../_kit/agent.ts'
import { aCoordinator, aRun, type TestCoordinator } from '../_kit/coordinator.ts'
import { aWorkflow } from '../_kit/workflow.ts'

let c: TestCoordinator

before(async () => {
  c = await aCoordinator()
  await aWorkflow(c, { slug: 'any' })
})
after(() => c.stop())

const causeOf = async (run: string): Promise<Cause> => (await c.call(ops.runs.why, { run })).why.causes[0]!

test('a program whose agent writes nothing down may have ended, and no cancel is advised', async () => {
  const { id } = await aRun(c, { workflow: 'any' })
  const { agent, link, offer } = await aRunningAgent(c)
  await link.report(offer, 1, start())
  const before = await causeOf(id)
  assert.deepEqual([before.code, /runs cancel/.test(before.change)], ['EXECUTING', true])
  const unready = JSON.stringify([{ check: 'spool-writes', message: 'its disk takes no more: make room on it.' }])
  await c.db`update runners set unready = ${unready}::text::json where id = ${agent.id}`
  const cause = await causeOf(id)
  assert.match(cause.message, /, attempt 1, or has ended: its agent cannot write down what it says\./)
  assert.match(cause.change, /^Whoever keeps the machine .*make room on it\)/)
  agent.close()
})
