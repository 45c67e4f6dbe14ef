import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { JobId } from '@windlass/shared/ids.ts'
import { ops } from '@windlass/shared/ops/index.ts'
import { until, untilPolled } from '@windlass/shared/test/_kit/until.ts'
import { createRetryWaits } from '../../bulk/retry-waits.ts'
import { workOnBulk, workOnTurn } from '../../bulk/work.ts'
import { aCoordinatorOfItsOwn, anOrg, aRun, asOwner, type TestCoordinator } from '../_kit/coordinator.ts'
import { aWorkflow } from '../_kit/workflow.ts'

let c: TestCoordinator

before(async () => {
  c = await aCoordinatorOfItsOwn()
})
after(() => c.stop())

/** An org with a cancelled run of a workflow. */
async function anOrgThatRetries(name: string) {
  const o = asOwner(c, await anOrg(c, name))
  const { slug } = await aWorkflow(o)
  const { id } = await aRun(o, { workflow: slug })
  await o.call(ops.runs.cancel, { run: id })
  return { o, slug, run: id }
}

/** A judge that says nothing before the gate opens, and what it was asked by whom. */
function gated() {
  const gate = Promise.withResolvers<void>()
  const real = c.deps.judge.judge.bind(c.deps.judge)
  const asked: { org: string; isPatient: boolean | undefined }[] = []
  async function judge(...[schema, value, ask]: Parameters<typeof real>) {
    asked.push({ org: ask.org, isPatient: ask.isPatient })
    await gate.promise
    return real(schema, value, ask)
  }
  return { judge, asked, open: gate.resolve }
}

const retry = async ({ o, slug }: Awaited<ReturnType<typeof anOrgThatRetries>>) =>
  (await o.call(ops.runs.bulkRetry, { org: o.org, filter: { workflow: slug } })).job

const ended = (o: TestCoordinator, job: JobId) =>
  until('the end of a job', async () => {
    const now = (await o.call(ops.jobs.get, { job })).job
    return now.status !== 'running' && now
  })

test('bulk retries whose inputs are not judged yet hold no worker, and go on with the first verdict', async (t) => {
  const retrying = [await anOrgThatRetries('one'), await anOrgThatRetries('two')]
  const other = asOwner(c, await anOrg(c, 'other'))
  const { slug } = await aWorkflow(other)
  const run = await aRun(other, { workflow: slug })
  const { judge, asked, open } = gated()
  t.mock.method(c.deps.judge, 'judge', judge)
  const jobs = await Promise.all(retrying.map(retry))
  await untilPolled('both of them are being judged', () => Promise.resolve(asked.length >= 2))
  const { job } = await other.call(ops.runs.bulkCancel, { org: other.org, filter: { workflow: slug } })
  assert.equal((await ended(other, job.id)).done, 1)
  assert.equal((await other.call(ops.runs.get, { run: run.id })).run.status, 'cancelled')
  open()
  for (const [n, { o }] of retrying.entries()) assert.equal((await ended(o, jobs[n]!.id)).done, 1)
  const orgs = retrying.map(({ o }) => o.orgId)
  assert.deepEqual(asked.map(({ org }) => org).toSorted(), orgs.toSorted(), 'nobody had to give up and ask again')
  assert.ok(
    asked.every(({ isPatient }) => isPatient),
    'they have their turns also in a full line',
  )
})

test('a run that waits to be judged is retried once, whoever is faster', async () => {
  const retrying = await anOrgThatRetries('three')
  const { o, run } = retrying
  // Its jobs are held up: nobody but the test works on them.
  await c.db`
    insert into graphile_worker._private_job_queues (queue_name, locked_at, locked_by)
    values (${o.orgId}, now(), 'a test')`
  const { id } = await retry(retrying)
  const { judge, asked, open } = gated()
  const deps = { ...c.deps, judge: { ...c.deps.judge, judge }, retryWaits: createRetryWaits(c.deps.log) }
  const turn = await workOnBulk(deps, id)
  assert.ok(typeof turn === 'object')
  assert.deepEqual(await workOnBulk(deps, id), turn, 'the next turn waits for the same')
  assert.equal(asked.length, 1)
  assert.equal(await workOnBulk(c.deps, id), 'over', 'another coordinator does not wait for it')
  open()
  assert.equal(await turn.isDone, true)
  assert.equal((await ended(o, id)).done, 1)
  assert.equal((await o.db`select from runs where retry_of = ${run}`).length, 1)
})

test('a job whose first verdict is there has the next turn of its org', async () => {
  const retrying = await anOrgThatRetries('four')
  const { o } = retrying
  await c.db`
    insert into graphile_worker._private_job_queues (queue_name, locked_at, locked_by)
    values (${o.orgId}, now(), 'a test')`
  const { id } = await retry(retrying)
  const { job: other } = await o.call(ops.runs.bulkCancel, { org: o.org, filter: { all: true } })
  const statuses = async () => {
    const jobs = await Promise.all([id, other.id].map((job) => o.call(ops.jobs.get, { job })))
    return jobs.map(({ job }) => job.status)
  }
  const { judge, open } = gated()
  const deps = { ...c.deps, judge: { ...c.deps.judge, judge }, retryWaits: createRetryWaits(c.deps.log) }
  await workOnTurn(deps, o)
  open()
  await deps.retryWaits.idle()
  assert.deepEqual(await statuses(), ['running', 'running'])
  await workOnTurn(deps, o)
  assert.deepEqual(await statuses(), ['completed', 'running'])
  await workOnTurn(deps, o)
  assert.deepEqual(await statuses(), ['completed', 'completed'])
})

test('what is late and fails is tried again later', async () => {
  const waits = createRetryWaits(c.deps.log)
  const late = Promise.withResolvers<void>()
  const wait = waits.add(c.orgId, late.promise)
  let again = false
  waits.after(wait, async () => void (again = true))
  assert.equal(waits.of(c.orgId), wait)
  late.reject(new Error('the judge is gone'))
  await waits.idle()
  assert.deepEqual([await wait.isDone, again, waits.of(c.orgId)], [false, false, undefined])
})
