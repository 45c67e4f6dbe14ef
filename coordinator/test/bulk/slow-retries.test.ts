import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { ops } from '@windlass/shared/ops/index.ts'
import { until } from '@windlass/shared/test/_kit/until.ts'
import { aCoordinator, aRun, type TestCoordinator } from '../_kit/coordinator.ts'
import { aVersion, aWorkflow } from '../_kit/workflow.ts'

let c: TestCoordinator

before(async () => {
  c = await aCoordinator()
})
after(() => c.stop())

test('retries whose inputs are slow to judge are done a few at a time, as others wait for a worker', async () => {
  const slow = await aWorkflow(c)
  const runs = await Promise.all(
    Array.from({ length: 15 }, (_, n) => aRun(c, { workflow: slow.slug, input: { x: `${'a'.repeat(40 + n)}!` } })),
  )
  for (const { id } of runs) await c.call(ops.runs.cancel, { run: id })
  await aVersion(c, slow, {
    inputSchema: { type: 'object', properties: { x: { type: 'string', pattern: '^(a+)+$' } } },
  })
  const { job } = await c.call(ops.runs.bulkRetry, { org: c.org, filter: { workflow: slow.slug } })
  const jobNow = async () => (await c.call(ops.jobs.get, { job: job.id })).job
  const { failed } = await until('the first that were tried', async () => {
    const now = await jobNow()
    return now.failed > 0 && now
  })
  assert.ok(failed < runs.length, `${failed} at once`)
  const end = await until('the end of the job', async () => {
    const now = await jobNow()
    return now.status !== 'running' && now
  })
  assert.deepEqual([end.status, end.done, end.failed], ['completed', 0, runs.length])
})
