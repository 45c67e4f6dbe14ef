// Whoever was at a job is gone, and with him the job of graphile-worker that he had: the job itself goes on.
import assert from 'node:assert/strict'
import { after, before, beforeEach, test } from 'node:test'
import { createLog } from '@windlass/shared/log.ts'
import type { BulkFilter, Job } from '@windlass/shared/model/job.ts'
import { ops } from '@windlass/shared/ops/index.ts'
import { sweepBulkJobsOnce } from '../../bulk/sweep.ts'
import { workOnTurn } from '../../bulk/work.ts'
import { enqueue, type Jobs } from '../../jobs/queue.ts'
import { aCoordinatorOfItsOwn, anOrg, aRun, asOwner, type TestCoordinator } from '../_kit/coordinator.ts'
import { untilPolled } from '../_kit/until.ts'
import { aWorkflow } from '../_kit/workflow.ts'

let c: TestCoordinator
let o: TestCoordinator
let orgs = 0

before(async () => {
  c = await aCoordinatorOfItsOwn()
})
after(() => c.stop())
beforeEach(async () => {
  o = asOwner(c, await anOrg(c, `org-${++orgs}`))
  await aWorkflow(o, { slug: 'any' })
})

const cancel = async (filter: BulkFilter = { all: true }, dryRun = false) =>
  (await o.call(ops.runs.bulkCancel, { org: o.org, filter, dryRun })).job

const statusOf = async ({ id }: Job) =>
  (await c.db<[{ status: string }]>`select status from bulk_jobs where id = ${id}`)[0].status

const ended = (...jobs: Job[]) =>
  untilPolled('the end of all jobs', async () => {
    const statuses = await Promise.all(jobs.map(statusOf))
    return statuses.every((status) => status === 'completed')
  })

/** Nobody does the jobs of the org. */
const holdQueue = () => c.db`
  insert into graphile_worker._private_job_queues (queue_name, locked_at, locked_by)
  values (${o.orgId}, now(), 'a test')
  on conflict (queue_name) do update set locked_at = now(), locked_by = 'a test'`

const free = (...workers: string[]) => c.db`select graphile_worker.force_unlock_workers(${workers})`

interface Turn {
  task: string
  inSeconds: number
}

const turnsToCome = () => c.db<Turn[]>`
  select j.task_identifier as task,
         greatest(0, round(extract(epoch from j.run_at - now())))::int as in_seconds
  from graphile_worker.jobs j
  where j.queue_name = ${o.orgId} and j.attempts < j.max_attempts
  order by j.id`

/** As a worker begins what is to come. */
const begin = (worker: string) => c.db`
  update graphile_worker._private_jobs j
  set locked_at = now(), locked_by = ${worker}, attempts = attempts + 1
  from graphile_worker._private_job_queues q
  where q.id = j.job_queue_id and q.queue_name = ${o.orgId}`

/** Every trace of a turn is gone. */
const dropTurns = () => c.db`
  delete from graphile_worker._private_jobs
  where id in (select id from graphile_worker.jobs where queue_name = ${o.orgId})`

test('a job goes on whose coordinator is killed when the org has begun another one meanwhile', async () => {
  await aRun(o, { workflow: 'any' })
  await holdQueue()
  const first = await cancel()
  await begin('killed')
  const second = await cancel({ all: true }, true)
  // As others do it whose worker is dead.
  await free('killed', 'a test')
  await ended(first, second)
})

test('a job that failed holds up no other of its org, and is tried again later', async () => {
  await holdQueue()
  const [first, second] = [await cancel(), await cancel({ all: true }, true)]
  await c.db`update bulk_jobs set filter = '{ "status": 5 }' where id = ${first.id}`
  await workOnTurn(c.deps, o)
  assert.deepEqual([await statusOf(first), await statusOf(second)], ['running', 'running'])
  const turns = await turnsToCome()
  assert.deepEqual(
    turns.map(({ task, inSeconds }) => [task, inSeconds > 0]),
    [
      ['bulkJobs:turn', false],
      ['bulkJobs:turn', true],
    ],
  )
  await workOnTurn(c.deps, o)
  assert.equal(await statusOf(second), 'completed')
  await c.db`update bulk_jobs set filter = '{ "all": true }' where id = ${first.id}`
  await workOnTurn(c.deps, o)
  assert.equal(await statusOf(first), 'running', 'it is not its turn yet')
  await c.db`update bulk_jobs set turn_at = now() where id = ${first.id}`
  await workOnTurn(c.deps, o)
  assert.equal(await statusOf(first), 'completed')
})

const old: [keyof Jobs, (job: Job) => unknown][] = [
  ['runs:bulkTurns', ({ id }) => [{ orgId: o.orgId, jobId: id }]],
  ['runs:bulk', ({ id }) => ({ jobId: id })],
]
for (const [task, payloadOf] of old)
  test(`a job goes on that a version before has left as ${task}`, async () => {
    await holdQueue()
    const job = await cancel()
    await dropTurns()
    const payload = payloadOf(job) as never
    await c.db.begin((tx) => enqueue(tx, task, [{ payload, inMs: 0, key: `bulk:${o.orgId}` }]))
    await free('a test')
    await ended(job)
  })

/** Answers the orgs that were logged. */
async function sweep(): Promise<unknown[]> {
  const lines: string[] = []
  const log = createLog({}, 'info', { write: (line) => void lines.push(line) })
  await sweepBulkJobsOnce({ db: c.db, log })
  const shown = lines.map((line) => JSON.parse(line) as Record<string, unknown>)
  assert.ok(shown.every(({ name }) => name === 'bulk.turn.missing'))
  return shown.map(({ orgId }) => orgId)
}

test('a job without any turn to come gets one with the next sweep', async () => {
  await holdQueue()
  const [first, second] = [await cancel(), await cancel({ all: true }, true)]
  assert.deepEqual(await sweep(), [], 'it has one')
  await begin('a worker')
  assert.deepEqual(await sweep(), [], 'it has one now')
  await dropTurns()
  assert.deepEqual(await sweep(), [o.orgId])
  assert.deepEqual(await sweep(), [])
  await free('a test')
  await ended(first, second)
  assert.deepEqual(await sweep(), [], 'nothing is left')
})

test('a job whose turn was given up after its last attempt gets another one', async () => {
  await holdQueue()
  const job = await cancel()
  await c.db`
    update graphile_worker._private_jobs j
    set attempts = max_attempts
    from graphile_worker._private_job_queues q
    where q.id = j.job_queue_id and q.queue_name = ${o.orgId}`
  assert.deepEqual(await sweep(), [o.orgId])
  await free('a test')
  await ended(job)
})

test('a coordinator sweeps by itself', async () => {
  const job = await cancel({ all: true }, true)
  await ended(job)
  await c.db`update bulk_jobs set status = 'running', finished_at = null where id = ${job.id}`
  await untilPolled('its last turn to be over', async () => (await turnsToCome()).length === 0)
  const other = await c.another({ SWEEP_RUNS_MS: 50 })
  await ended(job)
  await other.stop()
})
