import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { newId, type RunId } from '@windlass/shared/ids.ts'
import { ops } from '@windlass/shared/ops/index.ts'
import { eraseDeleted, eraseRun } from '../../engine/commit/delete-run.ts'
import { addErasures } from '../../engine/store/erase.ts'
import { untilPolled } from '@windlass/shared/test/_kit/until.ts'
import { anAgent, end, line, returned, start } from '../_kit/agent.ts'
import { anOrg, aCoordinator, aRun, asOwner, refusal, runOf, type TestCoordinator } from '../_kit/coordinator.ts'
import { accepted, aParkedRun, call, type Crew, question } from '../_kit/waiting.ts'
import { aWorkflow } from '../_kit/workflow.ts'

let c: TestCoordinator
let crew: Crew

before(async () => {
  c = await aCoordinator()
  await aWorkflow(c, { slug: 'any' })
  const agent = await anAgent(c)
  crew = { c, agent, link: await agent.connect() }
})
after(async () => {
  crew.agent.close()
  await c.stop()
})

const remove = (run: string) => c.call(ops.runs.delete, { run })
const listed = async (ask: object = {}) =>
  (await c.call(ops.runs.list, { org: c.org, limit: 100, ...ask })).runs.map(({ id }) => id)

async function aFailedRun(ask: object = {}): Promise<RunId> {
  const { id } = await aRun(c, { workflow: 'any', input: { secret: 'x' }, ...ask })
  const offer = await accepted(crew)
  await crew.link.report(offer, 1, start(), line('hello'), end({ how: 'exited', exitCode: 1 }))
  assert.equal((await runOf(c, id)).status, 'failed')
  return id
}

test('of a deleted run its state and times are left, and nothing that it was given or told', async () => {
  const id = await aFailedRun({ tags: ['nightly'] })
  const before = await runOf(c, id)
  await remove(id)
  const run = await runOf(c, id)
  assert.ok(run.deletedAt! >= run.finishedAt!)
  assert.deepEqual(run, { ...before, deletedAt: run.deletedAt, error: null, tags: [] })
  const gone = [
    () => c.call(ops.runs.input, { run: id }),
    () => c.call(ops.runs.output, { run: id }),
    () => c.call(ops.runs.events, { run: id }),
    () => c.call(ops.runs.retry, { run: id }),
  ]
  for (const ask of gone) await assert.rejects(ask(), refusal('RUN_DELETED'))
  const stream = await fetch(`${c.url}/v1/runs/${id}/events/stream`, {
    headers: { authorization: `Bearer ${c.apiKey}` },
  })
  assert.equal(stream.status, 410)
  await stream.body?.cancel()
  await untilPolled('its log is gone', async () => {
    const rows = await c.db`select 1 from run_events where run_id = ${id}`
    return rows.length === 0
  })
  await remove(id)
  assert.deepEqual(await runOf(c, id), run, 'said again it changes nothing')
  const { auditEntries } = await c.call(ops.audit.list, { org: c.org, target: id })
  assert.deepEqual(
    auditEntries.map(({ action, before: was }) => [action, was]),
    [['runs.delete', { status: 'failed' }]],
  )
})

test('one job erases the logs of an org, and jobs of others have a worker', async () => {
  const [one, two, three] = [await aFailedRun(), await aFailedRun(), await aFailedRun()]
  const other = asOwner(c, await anOrg(c))
  await aWorkflow(other, { slug: 'any' })
  await aRun(other, { workflow: 'any' })
  const underWay = async () => {
    const rows = await c.db`
      select from graphile_worker.jobs
      where queue_name = ${c.orgId} and task_identifier = 'runs:eraseDeleted' and locked_at is not null`
    return rows.length
  }
  await c.db.begin(async (tx) => {
    await tx`select 1 from run_events where run_id in (${one}, ${two}) for update`
    await Promise.all([remove(one), remove(two)])
    await untilPolled('a log is being erased', async () => (await underWay()) > 0)
    // For another job, as that one is under way.
    await remove(three)
    let most = 0
    const { job } = await other.call(ops.runs.bulkCancel, { org: other.org, filter: { all: true } })
    await untilPolled('the end of the job of the other org', async () => {
      most = Math.max(most, await underWay())
      return (await other.call(ops.jobs.get, { job: job.id })).job.status === 'completed'
    })
    assert.ok(most <= 1, `${most} at once`)
  })
  const left = () => c.db`select from run_events where run_id in (${one}, ${two}, ${three})`
  await untilPolled('the end of all three logs', async () => (await left()).length === 0)
  await untilPolled('nothing is left to erase', async () => (await c.db`select from run_erasures`).length === 0)
})

test('a long log is erased in turns, between which others have a worker', async () => {
  const id = await aFailedRun()
  await c.db`update run_events set cursor = 11000 where run_id = ${id} and cursor = 1`
  const left = () => c.db`select cursor from run_events where run_id = ${id}`
  await addErasures(c.db, [{ orgId: c.orgId, runId: id, most: 12_000, done: 0 }])
  await eraseDeleted(c.deps, { orgId: c.orgId }, 0)
  await untilPolled('the next turns have erased the rest', async () => (await left()).length === 0)
})

test('a job of a version before this one is taken over', async () => {
  const id = await aFailedRun()
  await eraseRun(c.deps, { runId: id, orgId: c.orgId, most: 12_000 })
  const left = () => c.db`select from run_events where run_id = ${id}`
  await untilPolled('its log is erased', async () => (await left()).length === 0)
})

test('nothing of it is left in any table but its row and what points to it', async () => {
  const marker = `marker-${newId('req')}`
  const parked = await aParkedRun(
    crew,
    { workflow: 'any', input: marker, tags: [marker] },
    question({ prompt: marker }),
  )
  const run = parked.run
  await crew.link.report(parked, 4, end(returned(marker)))
  assert.equal((await runOf(c, run)).status, 'completed')
  await remove(run)
  await untilPolled('its journal is gone', async () => {
    const rows =
      await c.db`select 1 from journal where run_id = ${run} union all select 1 from run_events where run_id = ${run}`
    return rows.length === 0
  })
  const tables = await c.db<{ name: string }[]>`
    select relname as name from pg_class
    where relkind = 'r' and relnamespace = 'public'::regnamespace and not relispartition`
  for (const { name } of tables) {
    const rows = await c.db`select 1 from ${c.db(name)} t where t::text like ${`%${marker}%`} limit 1`
    assert.equal(rows.length, 0, name)
  }
})

test('lists leave it out, unless they are asked for deleted runs', async () => {
  const [first, second] = [await aFailedRun({ tags: ['a'] }), await aFailedRun({ tags: ['a'] })]
  await remove(first)
  for (const ask of [{}, { status: ['failed'] as const }, { tag: 'a' }, { workflow: 'any' }]) {
    const found = await listed(ask)
    assert.deepEqual([found.includes(first), found.includes(second)], [false, true], JSON.stringify(ask))
  }
  for (const ask of [{}, { status: ['failed'] }, { workflow: 'any' }]) {
    const found = await listed({ deleted: true, ...ask })
    assert.deepEqual([found.includes(first), found.includes(second)], [true, false], JSON.stringify(ask))
  }
  const { job } = await c.call(ops.runs.bulkRetry, { org: c.org, filter: { status: ['failed'] }, dryRun: true })
  await untilPolled('the count', async () => {
    const { status, matched } = (await c.call(ops.jobs.get, { job: job.id })).job
    return status === 'completed' && matched === (await listed({ status: ['failed'] })).length
  })
})

test('an unfinished run is not deleted, nor one below which another is unfinished', async () => {
  const queued = await aRun(c, { workflow: 'any' })
  await assert.rejects(remove(queued.id), refusal('RUN_NOT_FINISHED'))
  await c.call(ops.runs.cancel, { run: queued.id })
  await remove(queued.id)

  const parent = await aParkedRun(crew, { workflow: 'any' }, call('any'))
  const child = await accepted(crew)
  await crew.link.report(child, 1, start())
  // The parent ends though its child goes on: the program has caught it.
  await crew.link.report(parent, 4, end(returned('early')))
  assert.equal((await runOf(c, parent.run)).status, 'completed')
  const status = (await runOf(c, child.run)).status
  if (status === 'running' || status === 'cancelling')
    await assert.rejects(remove(parent.run), refusal('RUN_HAS_LIVE_CHILDREN'))
  await crew.link.report(child, 2, end(returned('late')))
  await untilPolled('the end of the child', async () => (await runOf(c, child.run)).finishedAt !== null)
  await remove(parent.run)
  // The child keeps pointing at it.
  assert.equal((await runOf(c, child.run)).parentRunId, parent.run)
})

test('an idempotency key and a retry keep pointing at it', async () => {
  const key = { idempotencyKey: `key-${c.org}` }
  const { run: first } = await c.call(ops.runs.trigger, { org: c.org, workflow: 'any', ...key })
  await c.call(ops.runs.cancel, { run: first.id })
  const { run: again } = await c.call(ops.runs.retry, { run: first.id })
  await remove(first.id)
  const { run } = await c.call(ops.runs.trigger, { org: c.org, workflow: 'any', ...key })
  assert.equal(run.id, first.id)
  assert.equal((await runOf(c, again.id)).retryOf, first.id)
  await c.call(ops.runs.cancel, { run: again.id })
})

test('of many deletes at once one is recorded', async () => {
  const id = await aFailedRun()
  await Promise.all(Array.from({ length: 10 }, () => remove(id)))
  const { auditEntries } = await c.call(ops.audit.list, { org: c.org, target: id })
  assert.equal(auditEntries.length, 1)
})

test("another org's run and an unknown one look absent", async () => {
  const id = await aFailedRun()
  const { apiKey } = await anOrg(c)
  await assert.rejects(c.call(ops.runs.delete, { run: id }, { apiKey }), refusal('NOT_FOUND'))
  await assert.rejects(remove(newId('run')), refusal('NOT_FOUND'))
  assert.equal((await runOf(c, id)).deletedAt, null)
})
