// Runs below those that are cancelled, as far as whoever cancelled has left them to a job.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { cancelThese } from '../../engine/commit/cancel.ts'
import { cancelDescendants } from '../../jobs/cancel-descendants.ts'
import type { Jobs } from '../../jobs/queue.ts'
import { aCoordinator, aRun, logOf, runOf, type TestCoordinator } from '../_kit/coordinator.ts'
import { untilPolled } from '../_kit/until.ts'
import { aWorkflow, type TestWorkflow } from '../_kit/workflow.ts'

let c: TestCoordinator
let workflow: TestWorkflow

before(async () => {
  c = await aCoordinator()
  workflow = await aWorkflow(c)
})
after(() => c.stop())

const HOUR_MS = 3_600_000

/** Runs that have a run below them each. */
async function parents(count: number): Promise<Map<string, string>> {
  const pairs = new Map<string, string>()
  for (let n = 0; n < count; n++) {
    const [{ id: parent }, { id: child }] = [
      await aRun(c, { workflow: workflow.slug }),
      await aRun(c, { workflow: workflow.slug }),
    ]
    await c.db`update runs set entries = 1 where id = ${parent}`
    await c.db`
      update runs
      set parent_run_id = ${parent}, parent_entry = 1, root_run_id = ${parent}, depth = 1
      where id = ${child}`
    pairs.set(parent, child)
  }
  return pairs
}

/** What is to be done below this run. */
async function jobsOf(run: string): Promise<Jobs['runs:cancelBelow'][]> {
  const rows = await c.db<{ payload: Jobs['runs:cancelBelow'] }[]>`
    select payload from graphile_worker._private_jobs where payload::text like ${`%"runId":"${run}"%`}`
  return rows.map(({ payload }) => payload).filter((payload) => 'parents' in payload)
}

const statusOf = async (run: string) => (await runOf(c, run)).status

test('runs that are cancelled together leave one job, which cancels what each has called', async () => {
  const pairs = await parents(3)
  const ids = [...pairs.keys()] as Parameters<typeof cancelThese>[1]
  await cancelThese(c.deps, ids, { by: 'somebody', reason: 'enough', descentInMs: HOUR_MS })
  const jobs = await jobsOf(ids[0]!)
  assert.equal(jobs.length, 1)
  assert.deepEqual(jobs[0]!.parents.map(({ runId }) => runId).toSorted(), ids.toSorted())
  await cancelDescendants(c.deps, jobs[0]!)
  for (const [parent, child] of pairs) {
    assert.equal(await statusOf(child), 'cancelled')
    const { data } = (await logOf(c, child)).find(({ type }) => type === 'run.cancelling')!
    assert.match(String(data.reason), new RegExp(`^its parent ${parent} was cancelled: enough`))
  }
})

test('what a turn of the job leaves is done by the next one', async () => {
  const pairs = await parents(2)
  const [first] = pairs.keys()
  const left = [...pairs.keys()].map((runId) => ({ runId, by: 'somebody', reason: 'enough' }))
  await cancelDescendants(c.deps, { orgId: c.orgId, parents: left }, 0)
  for (const child of pairs.values())
    await untilPolled('it is cancelled', async () => (await statusOf(child)) === 'cancelled')
  await untilPolled('the job is gone', async () => (await jobsOf(first!)).length === 0)
})

test('one below which nothing can be cancelled does not keep the others', async (t) => {
  const pairs = await parents(3)
  const [first] = pairs.keys()
  const left = [...pairs.keys()].map((runId) => ({ runId, by: 'somebody', reason: 'enough' }))
  const isBroken = (sql: TemplateStringsArray, ...values: unknown[]) =>
    sql.join('').includes('with recursive below') && values.includes(first)
  const broken = new Proxy(c.deps.db, {
    apply: (db, of, args: Parameters<typeof isBroken>) =>
      isBroken(...args) ? Promise.reject(new Error('it is broken')) : Reflect.apply(db, of, args),
  })
  const log = Object.assign(() => {}, c.deps.log, { warn: t.mock.fn() })
  await cancelDescendants({ ...c.deps, log, db: broken }, { orgId: c.orgId, parents: left })
  assert.equal(log.warn.mock.callCount(), 1)
  for (const child of pairs.values())
    await untilPolled('it is cancelled', async () => (await statusOf(child)) === 'cancelled')
})

test('jobs of versions before this one, for one run each, are done', async () => {
  const pairs = await parents(1)
  const [[runId, child]] = [...pairs] as [[string, string]]
  const payload: Jobs['runs:cancelDescendants'] = { orgId: c.orgId, runId, by: 'somebody', reason: 'enough' }
  await c.db`select from graphile_worker.add_job('runs:cancelDescendants', ${JSON.stringify(payload)}::text::json)`
  await untilPolled('it is cancelled', async () => (await statusOf(child)) === 'cancelled')
})
