import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { createLog } from '@windlass/shared/log.ts'
import { openPgPool } from '../../db/client.ts'
import { freeOnce } from '../../jobs/dead-workers.ts'
import { enqueue } from '../../jobs/queue.ts'
import { aCoordinatorOfItsOwn, type TestCoordinator } from '../_kit/coordinator.ts'
import { untilPolled } from '../_kit/until.ts'

let c: TestCoordinator
const log = createLog({ part: 'test' }, 'error')

before(async () => {
  c = await aCoordinatorOfItsOwn()
})
after(() => c.stop())

const jobs = async () => {
  const rows = await c.db<{ key: string }[]>`select key from graphile_worker.jobs where task_identifier like 'runs:%'`
  return rows.map(({ key }) => key).sort()
}

/** As if a worker had been killed in the middle of it so long ago. */
async function lockedBy(worker: string, key: string, agoMs: number): Promise<void> {
  const job = { payload: { orgId: worker, runs: [{ runId: 'run_x', epoch: 1 }] }, inMs: 3_600_000, key }
  await c.db.begin((tx) => enqueue(tx, 'runs:cancelDeadline', [job]))
  await c.db`
    with job as (
      update graphile_worker._private_jobs
      set locked_by = ${worker}, locked_at = now() - ${agoMs} * interval '1 millisecond', run_at = now()
      where key = ${key}
      returning job_queue_id
    )
    update graphile_worker._private_job_queues q
    set locked_by = ${worker}, locked_at = now() - ${agoMs} * interval '1 millisecond'
    from job
    where q.id = job.job_queue_id`
}

test('a job of a worker that was killed is done by another, and its queue goes on', async (t) => {
  await lockedBy('gone', 'locked-long', 121_000)
  await lockedBy('works', 'locked-now', 1000)
  const behind = {
    payload: { orgId: 'gone', runs: [{ runId: 'run_x', epoch: 1 }] },
    inMs: 0,
    key: 'behind',
  }
  await c.db.begin((tx) => enqueue(tx, 'runs:cancelDeadline', [behind]))
  assert.deepEqual(await jobs(), ['behind', 'locked-long', 'locked-now'])
  const pgPool = openPgPool(c.deps.config.databaseUrl, { max: 1, log })
  t.after(() => pgPool.end())
  assert.deepEqual(await freeOnce({ pgPool, log }), ['gone'])
  await untilPolled('both jobs of its queue to be done', async () => (await jobs()).join() === 'locked-now')
  assert.deepEqual(await freeOnce({ pgPool, log }), [])
})
