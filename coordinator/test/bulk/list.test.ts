import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { INPUT_STATUSES } from '@windlass/shared/model/input.ts'
import { RUN_STATUSES } from '@windlass/shared/model/run.ts'
import { ops } from '@windlass/shared/ops/index.ts'
import { aCoordinator, aRun, refusal, type TestCoordinator } from '../_kit/coordinator.ts'
import { aWorkflow } from '../_kit/workflow.ts'

let c: TestCoordinator

before(async () => {
  c = await aCoordinator()
  await aWorkflow(c, { slug: 'any' })
})
after(() => c.stop())

test('a status is named once at most, so that what is kept of a filter is short', async () => {
  const { id } = await aRun(c, { workflow: 'any' })
  const often = Array.from({ length: 1000 }, () => 'queued' as const)
  const twice = ['queued', 'queued'] as const
  for (const status of [[...twice], often]) {
    const filter = { status, tag: 'none' }
    const ask = { org: c.org, filter, dryRun: true }
    await assert.rejects(c.call(ops.runs.bulkCancel, ask), refusal('VALIDATION_FAILED', 'filter.status'))
    await assert.rejects(c.call(ops.runs.list, { org: c.org, status }), refusal('VALIDATION_FAILED', 'status'))
    await assert.rejects(c.call(ops.runs.children, { run: id, status }), refusal('VALIDATION_FAILED', 'status'))
  }
  const open = ['open', 'open'] as ['open', 'open']
  await assert.rejects(c.call(ops.inputs.list, { org: c.org, status: open }), refusal('VALIDATION_FAILED', 'status'))
  const all = [...RUN_STATUSES]
  const { job } = await c.call(ops.runs.bulkCancel, { org: c.org, filter: { status: all, tag: 'none' }, dryRun: true })
  assert.deepEqual(job.filter.status, all)
  assert.equal((await c.call(ops.runs.list, { org: c.org, status: all })).runs.length, 1)
  await c.call(ops.inputs.list, { org: c.org, status: [...INPUT_STATUSES] })
})

test('a page of jobs has 1 MiB at most, and the pages have all of them', async () => {
  const JOBS = 12
  await c.db`
    insert into bulk_jobs (id, org_id, kind, filter, dry_run, reason, author, deadline_at, status, finished_at, error)
    select 'job_' || lpad(n::text, 26, '0'), ${c.orgId}, 'bulk-retry', '{}', false, '', '{}', now(), 'failed', now(),
           repeat('x', 300000)
    from generate_series(1, ${JOBS}) n`
  const pages: number[] = []
  const ids: string[] = []
  for (let cursor: string | null | undefined; cursor !== null;) {
    const page = await c.call(ops.jobs.list, { org: c.org, status: 'failed', limit: 100, ...(cursor && { cursor }) })
    pages.push(page.jobs.length)
    ids.push(...page.jobs.map(({ id }) => id))
    cursor = page.nextCursor
  }
  assert.deepEqual(pages, [3, 3, 3, 3])
  assert.equal(new Set(ids).size, JOBS)
})
