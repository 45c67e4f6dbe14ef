import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { newId } from '@windlass/shared/ids.ts'
import { findBare, insert, takeRuns } from '../../bulk/store.ts'
import { aCoordinator, type TestCoordinator } from '../_kit/coordinator.ts'
import { rowsRead } from '../_kit/rows-read.ts'

let c: TestCoordinator

before(async () => {
  c = await aCoordinator()
})
after(() => c.stop())

const FAILED = 20_000

test('a piece of a job costs the same, however many of its runs have failed before', async () => {
  const id = newId('job')
  const author = { kind: 'system', id: 'test', name: 'test', orgId: c.orgId, via: 'system', requestId: null } as const
  const job = {
    id,
    orgId: c.orgId,
    kind: 'bulk-retry',
    filter: {},
    dryRun: false,
    reason: '',
    author,
    key: null,
  } as const
  await c.db.begin((tx) => insert(tx, job))
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
