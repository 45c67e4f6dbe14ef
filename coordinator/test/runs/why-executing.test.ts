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

test('a program whose agent writes nothing down, or cannot read it, may have ended: no cancel is advised', async () => {
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
  const unread = JSON.stringify([{ check: 'spool-reads', message: 'a file cannot be read (EIO): mend it.' }])
  await c.db`update runners set unready = ${unread}::text::json where id = ${agent.id}`
  const other = await causeOf(id)
  assert.match(other.message, /, or has ended: its agent cannot read what it has written down of it\./)
  assert.match(other.change, /^Whoever keeps .*\(spool-reads: a file cannot be read \(EIO\): mend it\)/)
  agent.close()
})
