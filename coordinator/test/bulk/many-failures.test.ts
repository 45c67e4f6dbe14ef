import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { findBare, takeRuns } from '../../bulk/store.ts'
import { aJob } from '../_kit/a-job.ts'
import { aCoordinator, type TestCoordinator } from '../_kit/coordinator.ts'
import { rowsRead } from '../_kit/rows-read.ts'

let c: TestCoordinator

before(async () => {
  c = await aCoordinator()
})
after(() => c.stop())

const FAILED = 20_000

test('a piece of a job costs the same, however many of its runs have failed before', async () => {
  const id = await aJob(c.db, c.orgId, 'bulk-retry')
  await c.db`
    insert into bulk_job_runs (job_id, run_id, error)
    select ${id}, 'run_' || lpad(n::text, 26, '0'), case when n <= ${FAILED} then 'RUN_GONE' end
    from generate_series(1, ${FAILED + 1}) n`
  await c.db`analyze bulk_job_runs`
  const next = await rowsRead(c.db, 'bulk_job_runs', (db) => takeRuns(db, id, 20))
  assert.deepEqual(next, { found: 1, read: 1 })
  const look = await rowsRead(c.db, 'bulk_job_runs', async (db) => [await findBare(db, id)])
  assert.deepEqual(look, { found: 1, read: 0 })
})
