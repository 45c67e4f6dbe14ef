import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { newId } from '@windlass/shared/ids.ts'
import { ops } from '@windlass/shared/ops/index.ts'
import { untilPolled } from '@windlass/shared/test/_kit/until.ts'
import { addJob } from '../../bulk/start.ts'
import { enqueueDescents } from '../../engine/commit/enqueue-descents.ts'
import { enqueueRest } from '../../engine/commit/enqueue-rest.ts'
import { enqueueDeadlines } from '../../engine/commit/enqueue-deadlines.ts'
import { enqueueEnds } from '../../schedules/end-runs.ts'
import { aCoordinatorOfItsOwn, anOrg, aRun, asOwner, type TestCoordinator } from '../_kit/coordinator.ts'
import { aWorkflow, type TestWorkflow } from '../_kit/workflow.ts'

let c: TestCoordinator

before(async () => {
  c = await aCoordinatorOfItsOwn()
})
after(() => c.stop())

interface JobOfQueue {
  task: string
  queue: string | null
  isLocked: boolean
}

const jobsOf = (orgId: string) => c.db<JobOfQueue[]>`
  select j.task_identifier as task, j.queue_name as queue, j.locked_at is not null as is_locked
  from graphile_worker.jobs j
  join graphile_worker._private_jobs p on p.id = j.id
  where p.payload::text like ${`%${orgId}%`}
  order by j.id`

/** What the deletion of workflows leaves that have very many runs. */
async function deletions(o: TestCoordinator, workflows: readonly TestWorkflow[]): Promise<string[]> {
  const caller = { ...(await authorOf(o)), orgId: o.orgId }
  return c.db.begin(async (tx) => {
    const ids: string[] = []
    for (const { id } of workflows) {
      const ask = { kind: 'workflow-delete', filter: { workflow: id }, reason: '', dryRun: false } as const
      ids.push((await addJob(tx, caller as never, ask)).row.id)
    }
    return ids
  })
}

/** As any job of the org has it. */
async function authorOf(o: TestCoordinator): Promise<object> {
  const { job } = await o.call(ops.runs.bulkCancel, { org: o.org, filter: { tag: 'none' } })
  const [row] = await c.db<[{ author: object }]>`select author from bulk_jobs where id = ${job.id}`
  await ended(o, job.id)
  return row.author
}

const ended = (o: TestCoordinator, job: string) =>
  untilPolled('the end of a job', async () => {
    const now = (await o.call(ops.jobs.get, { job })).job
    return now.status !== 'running' && now
  })

/** Statements that wait for a lock, and since when. */
const waiting = async () => {
  const rows = await c.db<{ it: string }[]>`
    select pid || ' ' || query_start as it
    from pg_stat_activity
    where datname = current_database() and wait_event_type = 'Lock'`
  return rows.map(({ it }) => it)
}

test('jobs of one org hold one worker, and those of another org have the other', async () => {
  const [one, other] = [asOwner(c, await anOrg(c, 'one')), asOwner(c, await anOrg(c, 'other'))]
  const workflows = [await aWorkflow(one), await aWorkflow(one), await aWorkflow(one)]
  for (const { slug } of workflows) await aRun(one, { workflow: slug })
  const { slug } = await aWorkflow(other)
  const run = await aRun(other, { workflow: slug })
  let jobs: string[] = []
  await c.db.begin(async (tx) => {
    await tx`select from runs where org_id = ${one.orgId} for update`
    jobs = await deletions(one, workflows)
    assert.equal((await jobsOf(one.orgId)).length, 1, 'they have one place in the line of all orgs')
    const held = await untilPolled('one of them is held up', async () => {
      const all = await waiting()
      return all.length > 0 && all
    })
    const { job } = await other.call(ops.runs.bulkCancel, { org: other.org, filter: { workflow: slug } })
    assert.equal((await ended(other, job.id)).done, 1)
    assert.deepEqual(await waiting(), held, 'nobody has given up meanwhile, and no other job of the org waits')
  })
  for (const job of jobs) assert.equal((await ended(one, job)).done, 1)
  assert.equal((await other.call(ops.runs.get, { run: run.id })).run.status, 'cancelled')
})

test('jobs of an org of all kinds are in its queue', async () => {
  const { id: orgId } = await anOrg(c, 'kinds')
  const [runId, newRun] = [newId('run'), newId('run')]
  const inMs = 3_600_000
  await assert.rejects(
    c.db.begin(async (tx) => {
      await enqueueRest(tx, orgId)
      await enqueueDeadlines(tx, { orgId, runs: [{ runId, epoch: 1 }] }, inMs)
      await enqueueDescents(tx, [{ orgId, runId, by: 'key_x', reason: '' }], inMs)
      await enqueueEnds(tx, [{ orgId, schedule: newId('sch'), newRun, runIds: [runId], isAll: true }])
      const rows = await tx<{ task: string; queue: string }[]>`
        select j.task_identifier as task, j.queue_name as queue
        from graphile_worker.jobs j
        join graphile_worker._private_jobs p on p.id = j.id
        where p.payload ->> 'orgId' = ${orgId}`
      assert.equal(rows.length, 4)
      for (const { task, queue } of rows) assert.equal(queue, orgId, task)
      throw new Error('not meant')
    }),
    /not meant/,
  )
})
