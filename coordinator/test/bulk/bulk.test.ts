import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { newId } from '@windlass/shared/ids.ts'
import type { BulkFilter, Job } from '@windlass/shared/model/job.ts'
import { ops } from '@windlass/shared/ops/index.ts'
import type { Run } from '@windlass/shared/model/run.ts'
import { until } from '@windlass/shared/test/_kit/until.ts'
import { cleanBulkJobs, workOnBulk } from '../../bulk/work.ts'
import { anAgent, end, returned, start } from '../_kit/agent.ts'
import {
  anOrg,
  aCoordinator,
  aRun,
  asOwner,
  refusal,
  runOf,
  type TestCoordinator,
  typesOf,
} from '../_kit/coordinator.ts'
import { anEnvironment } from '../_kit/environments.ts'
import { accepted, aParkedRun, call, type Crew } from '../_kit/waiting.ts'
import { aWorkflow } from '../_kit/workflow.ts'

let c: TestCoordinator

before(async () => {
  c = await aCoordinator()
})
after(() => c.stop())

/** An org of its own, as jobs take what they find. */
async function ours(): Promise<TestCoordinator> {
  const org = asOwner(c, await anOrg(c, 'bulk'))
  await aWorkflow(org, { slug: 'any' })
  return org
}

const cancel = async (o: TestCoordinator, filter: BulkFilter, more: { dryRun?: boolean; reason?: string } = {}) =>
  (await o.call(ops.runs.bulkCancel, { org: o.org, filter, ...more })).job
const retry = async (o: TestCoordinator, filter: BulkFilter, more: { dryRun?: boolean } = {}) =>
  (await o.call(ops.runs.bulkRetry, { org: o.org, filter, ...more })).job
const jobOf = async (o: TestCoordinator, id: string) => (await o.call(ops.jobs.get, { job: id })).job
const ended = (o: TestCoordinator, { id }: Job) =>
  until('the end of the job', async () => {
    const job = await jobOf(o, id)
    return job.status !== 'running' && job
  })
const counts = ({ status, matched, done, failed }: Job) => [status, matched, done, failed]
const some = (o: TestCoordinator, count: number, ask: object = {}) =>
  Promise.all(Array.from({ length: count }, () => aRun(o, { workflow: 'any', ...ask })))
const statuses = async (o: TestCoordinator, runs: readonly Run[]) =>
  [...new Set((await Promise.all(runs.map(({ id }) => runOf(o, id)))).map(({ status }) => status))].sort()
const cancelAll = async (o: TestCoordinator, runs: readonly Run[]) => {
  for (const { id } of runs) await o.call(ops.runs.cancel, { run: id })
}

test('all queued runs of a workflow are cancelled, and no others', async () => {
  const o = await ours()
  const { slug } = await aWorkflow(o)
  const [meant, others] = [await some(o, 250), await some(o, 3, { workflow: slug })]
  const job = await cancel(o, { workflow: 'any', status: ['queued'] }, { reason: 'sent twice' })
  assert.deepEqual([job.kind, job.status, job.dryRun], ['bulk-cancel', 'running', false])
  assert.deepEqual(counts(await ended(o, job)), ['completed', 250, 250, 0])
  assert.deepEqual(await statuses(o, meant), ['cancelled'])
  assert.deepEqual(await statuses(o, others), ['queued'])
  assert.deepEqual(await typesOf(o, meant[0]!.id), ['run.queued', 'run.cancelling', 'run.cancelled'])
  const { auditEntries } = await o.call(ops.audit.list, { org: o.org, target: job.id })
  assert.deepEqual(
    auditEntries.map(({ action, after }) => [action, after?.['done']]),
    [
      ['jobs.finish', 250],
      ['runs.bulkCancel', undefined],
    ],
  )
  assert.equal(auditEntries[0]?.actor.id, auditEntries[1]?.actor.id)
  const { jobs } = await o.call(ops.jobs.list, { org: o.org })
  assert.deepEqual(jobs, [await jobOf(o, job.id)])
  assert.deepEqual((await o.call(ops.jobs.list, { org: o.org, status: 'running' })).jobs, [])
})

test('a filter by tag, environment or time finds what the list finds', async () => {
  const o = await ours()
  await anEnvironment(o, 'staging')
  const tagged = await some(o, 2, { tags: ['nightly'] })
  const staged = await some(o, 2, { environment: 'staging' })
  const plain = await some(o, 2)
  await ended(o, await cancel(o, { tag: 'nightly' }))
  await ended(o, await cancel(o, { environment: 'staging' }))
  assert.deepEqual(await statuses(o, [...tagged, ...staged]), ['cancelled'])
  assert.deepEqual(await statuses(o, plain), ['queued'])
  assert.equal((await ended(o, await cancel(o, { createdAfter: Date.now() + 60_000 }))).matched, 0)
  assert.equal((await ended(o, await cancel(o, { all: true }))).done, 2)
})

test('a dry run counts and does nothing', async () => {
  const o = await ours()
  const runs = await some(o, 5)
  const job = await ended(o, await cancel(o, { status: ['queued'] }, { dryRun: true }))
  assert.deepEqual([job.dryRun, ...counts(job)], [true, 'completed', 5, 0, 0])
  assert.deepEqual(await statuses(o, runs), ['queued'])
  assert.equal((await o.call(ops.audit.list, { org: o.org, target: job.id })).auditEntries.length, 0)
  await cancelAll(o, runs)
  assert.equal((await ended(o, await retry(o, { status: ['cancelled'] }, { dryRun: true }))).matched, 5)
})

test('an empty filter is refused, and one that can find nothing', async () => {
  const o = await ours()
  await assert.rejects(cancel(o, {}), refusal('VALIDATION_FAILED', 'filter'))
  await assert.rejects(retry(o, {}), refusal('VALIDATION_FAILED', 'filter'))
  await assert.rejects(cancel(o, { status: ['completed', 'failed'] }), refusal('VALIDATION_FAILED', 'filter.status'))
  await assert.rejects(retry(o, { status: ['running'] }), refusal('VALIDATION_FAILED', 'filter.status'))
  await assert.rejects(retry(o, { tag: 'a\0' }), refusal('VALIDATION_FAILED', 'filter.tag'))
  await assert.rejects(cancel(o, { workflow: 'absent' }), refusal('NOT_FOUND', 'filter.workflow'))
  await assert.rejects(cancel(o, { environment: newId('env') }), refusal('NOT_FOUND', 'filter.environment'))
  await assert.rejects(cancel(o, { all: false }), refusal('VALIDATION_FAILED', 'filter'))
  await assert.rejects(cancel(o, { colour: 'red' } as never), refusal('VALIDATION_FAILED', 'filter.colour'))
})

test('what has a process is told to stop, and children go with their parents', async () => {
  const o = await ours()
  const agent = await anAgent(o)
  const crew: Crew = { c: o, agent, link: await agent.connect() }
  const parent = await aParkedRun(crew, { workflow: 'any' }, call('any'))
  const child = await accepted(crew)
  await crew.link.report(child, 1, start())
  const job = await ended(o, await cancel(o, { status: ['waiting_for_child'] }))
  assert.deepEqual(counts(job), ['completed', 1, 1, 0])
  await until('the cancel of the child', async () => (await runOf(o, child.run)).status === 'cancelling')
  assert.equal((await runOf(o, parent.run)).status, 'cancelling')
  agent.close()
})

test('finished root runs are retried, each once', async () => {
  const o = await ours()
  const agent = await anAgent(o)
  const crew: Crew = { c: o, agent, link: await agent.connect() }
  const parent = await aParkedRun(crew, { workflow: 'any' }, call('any'))
  const child = await accepted(crew)
  await crew.link.report(child, 1, start(), end({ how: 'exited', exitCode: 1 }))
  await crew.link.report(parent, 4, end({ how: 'exited', exitCode: 1 }))
  const runs = await some(o, 30, { input: { n: 1 }, tags: ['a'], priority: 3 })
  await cancelAll(o, runs)
  const unfinished = await aRun(o, { workflow: 'any' })
  const job = await ended(o, await retry(o, { status: ['failed', 'cancelled'] }))
  assert.deepEqual(counts(job), ['completed', 31, 31, 0])
  const { runs: made } = await o.call(ops.runs.list, { org: o.org, trigger: 'retry', limit: 100 })
  assert.deepEqual(made.map(({ retryOf }) => String(retryOf)).sort(), [...runs.map(({ id }) => id), parent.run].sort())
  const one = made.find(({ retryOf }) => retryOf === runs[0]!.id)!
  assert.deepEqual([one.status, one.tags, one.priority, one.trigger.kind], ['queued', ['a'], 3, 'retry'])
  assert.match(one.trigger.actor ?? '', /^key_/)
  assert.deepEqual(await o.call(ops.runs.input, { run: one.id }), { input: { n: 1 } })
  // Its own runs are younger than the job.
  await cancelAll(o, [...made, unfinished])
  agent.close()
})

test('what cannot be retried is counted by its reason', async () => {
  const o = await ours()
  const [off, gone] = [await aWorkflow(o), await aWorkflow(o)]
  const runs = [
    ...(await some(o, 2)),
    ...(await some(o, 3, { workflow: off.slug })),
    ...(await some(o, 4, { workflow: gone.slug })),
  ]
  await cancelAll(o, runs)
  await o.call(ops.workflows.disable, { org: o.org, workflow: off.slug })
  await o.call(ops.workflows.delete, { org: o.org, workflow: gone.slug })
  const job = await ended(o, await retry(o, { all: true }))
  assert.deepEqual(counts(job), ['completed', 9, 2, 7])
  assert.deepEqual(job.failures, { WORKFLOW_DISABLED: 3, NOT_FOUND: 4 })
})

test('of many bulk retries at once each that is taken makes one run of each', async () => {
  const o = await ours()
  const runs = await some(o, 40)
  await cancelAll(o, runs)
  const results = await Promise.allSettled(Array.from({ length: 10 }, () => retry(o, { status: ['cancelled'] })))
  const taken = results.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []))
  for (const one of results) if (one.status === 'rejected') refusal('CONFLICT')(one.reason as Error)
  // One that began when another had ended is another job.
  for (const job of taken) await ended(o, job)
  const [{ least, most }] = await o.db<[{ least: number; most: number }]>`
    select min(n)::int as least, max(n)::int as most
    from (select count(*) as n from runs where org_id = ${o.orgId} and retry_of is not null group by retry_of) each`
  assert.deepEqual([least, most], [taken.length, taken.length])
  await ended(o, await cancel(o, { all: true }))
})

test('turns of one job at once, here and at another coordinator, do each piece once', async () => {
  const o = await ours()
  const other = await c.another()
  const runs = await some(o, 60)
  await cancelAll(o, runs)
  const job = await retry(o, { all: true })
  await Promise.all(Array.from({ length: 6 }, (_, i) => workOnBulk(i % 2 ? other.deps : c.deps, job.id)))
  assert.deepEqual(counts(await ended(o, job)), ['completed', 60, 60, 0])
  const [{ n }] = await o.db<[{ n: number }]>`
    select count(*)::int as n from runs where org_id = ${o.orgId} and retry_of is not null`
  assert.equal(n, 60)
  await ended(o, await cancel(o, { all: true }))
})

test('a job is cancelled, and what it has done stays done', async () => {
  const o = await ours()
  const runs = await some(o, 3)
  const { job } = await o.call(ops.runs.bulkCancel, { org: o.org, filter: { all: true } })
  const [first, second] = await Promise.allSettled([
    o.call(ops.jobs.cancel, { job: job.id }),
    o.call(ops.jobs.cancel, { job: job.id }),
  ])
  const { status, done } = await ended(o, job)
  const found = await Promise.all(runs.map(({ id }) => runOf(o, id)))
  assert.equal(found.filter((run) => run.status === 'cancelled').length, done, 'neither more nor less than it says')
  for (const one of [first, second])
    if (one.status === 'rejected') refusal('CONFLICT')(one.reason as Error)
    else assert.equal(one.value.job.status, 'cancelled')
  if (status === 'completed') await assert.rejects(o.call(ops.jobs.cancel, { job: job.id }), refusal('CONFLICT'))
  else assert.equal((await o.call(ops.jobs.cancel, { job: job.id })).job.status, 'cancelled')
  // The next of its kind may begin.
  await ended(o, await cancel(o, { all: true }))
})

test('a job that is not done by its deadline ends as failed', async () => {
  const o = await ours()
  await some(o, 3)
  const { job } = await o.call(ops.runs.bulkCancel, { org: o.org, filter: { tag: 'none' }, dryRun: true })
  await ended(o, job)
  await o.db`
    update bulk_jobs
    set status = 'running', finished_at = null, is_listed = false, deadline_at = now() where id = ${job.id}`
  await workOnBulk(c.deps, job.id)
  const after = await jobOf(o, job.id)
  assert.equal(after.status, 'failed')
  assert.match(after.error ?? '', /deadline/)
})

test('jobs are kept for 30 days, and what an ended one has left is cleaned away', async () => {
  const o = await ours()
  const old = await ended(o, await cancel(o, { tag: 'none' }))
  const late = await ended(o, await cancel(o, { tag: 'none' }))
  await o.db`insert into bulk_job_runs (job_id, run_id) values (${late.id}, 'run_x'), (${old.id}, 'run_y')`
  await o.db`update bulk_jobs set finished_at = finished_at - interval '31 days' where id = ${old.id}`
  await cleanBulkJobs(c.deps)
  await assert.rejects(jobOf(o, old.id), refusal('NOT_FOUND'))
  assert.equal((await jobOf(o, late.id)).id, late.id)
  assert.equal((await o.db`select 1 from bulk_job_runs where job_id in (${late.id}, ${old.id})`).length, 0)
})

test("another org's jobs and runs are not touched, and look absent", async () => {
  const [o, stranger] = [await ours(), await ours()]
  const theirs = await some(stranger, 3)
  const { id } = await aWorkflow(stranger)
  await assert.rejects(cancel(o, { workflow: id }), refusal('NOT_FOUND', 'filter.workflow'))
  assert.equal((await ended(o, await cancel(o, { all: true }))).matched, 0)
  assert.deepEqual(await statuses(stranger, theirs), ['queued'])
  const job = await cancel(stranger, { all: true })
  await assert.rejects(jobOf(o, job.id), refusal('NOT_FOUND'))
  await assert.rejects(o.call(ops.jobs.cancel, { job: job.id }), refusal('NOT_FOUND'))
  assert.equal((await ended(stranger, job)).done, 3)
  assert.ok(!(await o.call(ops.jobs.list, { org: o.org })).jobs.some((one) => one.id === job.id))
})

test('a run that ended before its piece came counts as failed', async () => {
  const o = await ours()
  const agent = await anAgent(o)
  const link = await agent.connect()
  const run = await aRun(o, { workflow: 'any' })
  const job = await cancel(o, { tag: 'none' }, { dryRun: true })
  await ended(o, job)
  const offer = await accepted({ c: o, agent, link })
  await link.report(offer, 1, start(), end(returned(1)))
  await o.db`update bulk_jobs set status = 'running', finished_at = null, dry_run = false where id = ${job.id}`
  await o.db`insert into bulk_job_runs (job_id, run_id) values (${job.id}, ${run.id})`
  await workOnBulk(c.deps, job.id)
  const after = await jobOf(o, job.id)
  assert.deepEqual([after.failed, after.failures], [1, { RUN_ALREADY_FINISHED: 1 }])
  agent.close()
})
