import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { Scope } from '@windlass/shared/scopes.ts'
import { newId } from '@windlass/shared/ids.ts'
import { ops } from '@windlass/shared/ops/index.ts'
import { until, untilPolled } from '@windlass/shared/test/_kit/until.ts'
import { purgeWorkflows } from '../../workflows/purge.ts'
import { anAgent, end, returned, start } from '../_kit/agent.ts'
import { anOrg, aCoordinator, aRun, refusal, runOf, type TestCoordinator } from '../_kit/coordinator.ts'
import { aKey } from '../_kit/credentials.ts'
import { aBlockedRun, accepted, call, type Crew, open } from '../_kit/waiting.ts'
import { aVersion, aWorkflow } from '../_kit/workflow.ts'

const DAY_MS = 86_400_000
const RESTORE_MS = 30 * DAY_MS

let c: TestCoordinator
let crew: Crew

before(async () => {
  c = await aCoordinator()
  const agent = await anAgent(c)
  crew = { c, agent, link: await agent.connect() }
})
after(async () => {
  crew.agent.close()
  await c.stop()
})

const remove = (workflow: string, at = c) => at.call(ops.workflows.delete, { org: c.org, workflow })
const restore = async (workflow: string, slug?: string) =>
  (await c.call(ops.workflows.restore, { org: c.org, workflow, slug })).workflow
const listed = async (deleted = false) =>
  (await c.call(ops.workflows.list, { org: c.org, deleted, limit: 100 })).workflows
const ids = async (deleted = false) => (await listed(deleted)).map(({ id }) => id)

test('a deleted workflow leaves the list, and is restored as it was', async () => {
  const made = await aWorkflow(c)
  await aVersion(c, made)
  await c.call(ops.workflows.disable, { org: c.org, workflow: made.slug })
  const before = (await listed()).find(({ id }) => id === made.id)!
  await remove(made.slug)
  assert.ok(!(await ids()).includes(made.id))
  const gone = (await listed(true)).find(({ id }) => id === made.id)!
  assert.equal(gone.purgeAt! - gone.deletedAt!, RESTORE_MS)
  await assert.rejects(remove(made.slug), refusal('NOT_FOUND'))
  await assert.rejects(remove(made.id), refusal('NOT_FOUND'))

  const back = await restore(made.id)
  assert.deepEqual(back, { ...before, updatedAt: back.updatedAt })
  assert.ok((await ids()).includes(made.id))
  assert.ok(!(await ids(true)).includes(made.id))
  await assert.rejects(restore(made.id), refusal('NOT_FOUND'))
  const { auditEntries } = await c.call(ops.audit.list, { org: c.org, target: made.id })
  assert.deepEqual(
    auditEntries.map(({ action }) => action),
    ['workflows.restore', 'workflows.delete', 'workflows.disable'],
  )
})

test('its slug is free at once, and a restore whose slug is taken needs another', async () => {
  const first = await aWorkflow(c)
  await remove(first.slug)
  const second = await aWorkflow(c, { slug: first.slug })
  await assert.rejects(restore(first.id), refusal('WORKFLOW_EXISTS', 'slug'))
  await assert.rejects(restore(first.id, second.slug), refusal('WORKFLOW_EXISTS', 'slug'))
  const back = await restore(first.id, `${first.slug}-again`)
  assert.deepEqual([back.id, back.slug], [first.id, `${first.slug}-again`])
  const run = await aRun(c, { workflow: back.slug })
  assert.equal(run.workflow.id, first.id)
  await c.call(ops.runs.cancel, { run: run.id })

  // By a slug the one is meant that was deleted last.
  await remove(second.slug)
  assert.equal((await restore(first.slug)).id, second.id)
})

test('of twenty restores under one slug one gets it', async () => {
  const slug = `contested-${c.org}`
  const made = await Promise.all(Array.from({ length: 20 }, () => aWorkflow(c)))
  for (const { id } of made) await remove(id)
  const results = await Promise.allSettled(made.map(({ id }) => restore(id, slug)))
  assert.equal(results.filter(({ status }) => status === 'fulfilled').length, 1)
  for (const one of results) if (one.status === 'rejected') refusal('WORKFLOW_EXISTS')(one.reason as Error)
})

test('no run of it starts, and those that exist go on', async () => {
  const { slug, id } = await aWorkflow(c)
  const blocked = await aBlockedRun(crew, { workflow: slug })
  const queued = await aRun(c, { workflow: slug })
  await remove(slug)
  for (const workflow of [slug, id]) await assert.rejects(aRun(c, { workflow }), refusal('NOT_FOUND'))
  await assert.rejects(c.call(ops.runs.retry, { run: queued.id }), refusal('NOT_FOUND'))
  await assert.rejects(c.call(ops.runs.restart, { run: blocked.run }), refusal('NOT_FOUND'))
  const { slug: parent } = await aWorkflow(c)
  const offer = await accepted(crew)
  assert.equal(offer.run, queued.id)
  await crew.link.report(offer, 1, start(), end(returned('done')))
  assert.equal((await runOf(c, queued.id)).status, 'completed')

  await aRun(c, { workflow: parent })
  const calling = await accepted(crew)
  await crew.link.report(calling, 1, start(), open(1, call(slug)))
  const [entry] = await c.db<{ state: string; result: string }[]>`
    select state, result from journal where run_id = ${calling.run} and n = 1`
  assert.equal(entry?.state, 'failed')
  assert.match(entry.result, /NOT_FOUND/)
  await crew.link.report(calling, 3, end(returned(1)))
  await c.call(ops.runs.cancel, { run: blocked.run })
})

test('with `runs: cancel` its unfinished runs end with it, in the same transaction', async () => {
  const { slug, id } = await aWorkflow(c)
  const { slug: other } = await aWorkflow(c)
  const running = await aRun(c, { workflow: slug })
  const offer = await accepted(crew)
  assert.equal(offer.run, running.id)
  await crew.link.report(offer, 1, start())
  const queued = await Promise.all(Array.from({ length: 5 }, () => aRun(c, { workflow: slug })))
  const foreign = await aRun(c, { workflow: other })
  await c.call(ops.workflows.delete, { org: c.org, workflow: slug, runs: 'cancel' })
  for (const run of queued) assert.equal((await runOf(c, run.id)).status, 'cancelled')
  assert.equal((await runOf(c, running.id)).status, 'cancelling')
  assert.equal((await runOf(c, foreign.id)).status, 'queued')
  const { auditEntries } = await c.call(ops.audit.list, { org: c.org, target: id, limit: 1 })
  assert.deepEqual(auditEntries[0]?.after, { cancelledRuns: 6 })
  await crew.link.report(offer, 2, end({ how: 'cancelled', forced: false }))
  assert.equal((await runOf(c, running.id)).status, 'cancelled')
  await c.call(ops.runs.cancel, { run: foreign.id })
})

test('more than 1,000 runs are cancelled by a job', async () => {
  const { slug, id } = await aWorkflow(c)
  for (let at = 0; at < 1001; at += 91) await Promise.all(Array.from({ length: 91 }, () => aRun(c, { workflow: slug })))
  await c.call(ops.workflows.delete, { org: c.org, workflow: slug, runs: 'cancel' })
  const { auditEntries } = await c.call(ops.audit.list, { org: c.org, target: id, limit: 1 })
  const job = await until('the end of the job', async () => {
    const { jobs } = await c.call(ops.jobs.list, { org: c.org })
    return jobs[0]?.status === 'completed' && jobs[0]
  })
  assert.deepEqual(auditEntries[0]?.after, { job: job.id })
  assert.deepEqual([job.kind, job.matched, job.done], ['workflow-delete', 1001, 1001])
})

test('its runs and versions stay readable by its id', async () => {
  const { slug, id } = await aWorkflow(c)
  const run = await aRun(c, { workflow: slug })
  await remove(slug)
  assert.equal((await runOf(c, run.id)).workflow.slug, slug)
  const { runs } = await c.call(ops.runs.list, { org: c.org, workflow: id })
  assert.deepEqual(
    runs.map((one) => one.id),
    [run.id],
  )
  assert.deepEqual((await c.call(ops.runs.list, { org: c.org, workflow: slug })).runs, [])
  const { versions } = await c.call(ops.workflows.listVersions, { org: c.org, workflow: id })
  assert.equal(versions.length, 1)
  await assert.rejects(c.call(ops.workflows.listVersions, { org: c.org, workflow: slug }), refusal('NOT_FOUND'))
  for (const row of [ops.workflows.disable, ops.workflows.enable])
    await assert.rejects(c.call(row, { org: c.org, workflow: id }), refusal('NOT_FOUND'))
  await assert.rejects(c.call(ops.workflows.promote, { org: c.org, workflow: id, version: 1 }), refusal('NOT_FOUND'))
  await c.call(ops.runs.cancel, { run: run.id })
})

test('another coordinator finds it no more within the second for which it remembers', async () => {
  const { slug } = await aWorkflow(c)
  const other = await c.another()
  await c.call(ops.runs.cancel, { run: (await aRun(other, { workflow: slug })).id })
  await remove(slug)
  await untilPolled('the other coordinator refuses', async () => {
    try {
      await c.call(ops.runs.cancel, { run: (await aRun(other, { workflow: slug })).id })
      return false
    } catch (error) {
      return refusal('NOT_FOUND')(error as Error)
    }
  })
})

test('who may restore sees what can be restored, and nobody else', async () => {
  const seen = async (role: 'member' | 'admin', scopes: Scope[]) => {
    const apiKey = await aKey(c.db, { orgId: c.orgId, role, scopes })
    return c.call(ops.workflows.list, { org: c.org, deleted: true }, { apiKey })
  }
  await assert.rejects(seen('member', []), refusal('FORBIDDEN'))
  await assert.rejects(seen('admin', ['workflow:read']), refusal('FORBIDDEN'))
  assert.ok(Array.isArray((await seen('admin', [])).workflows))
  assert.ok(Array.isArray((await seen('admin', ['workflow:read', 'workflow:delete'])).workflows))
})

test("another org's workflow looks absent, deleted or not", async () => {
  const { id, slug } = await aWorkflow(c)
  const stranger = await anOrg(c)
  const as = { apiKey: stranger.apiKey }
  for (const workflow of [id, slug])
    await assert.rejects(c.call(ops.workflows.delete, { org: stranger.slug, workflow }, as), refusal('NOT_FOUND'))
  await remove(slug)
  for (const workflow of [id, slug])
    await assert.rejects(c.call(ops.workflows.restore, { org: stranger.slug, workflow }, as), refusal('NOT_FOUND'))
  await assert.rejects(
    c.call(ops.workflows.listVersions, { org: stranger.slug, workflow: id }, as),
    refusal('NOT_FOUND'),
  )
  assert.deepEqual((await c.call(ops.workflows.list, { org: stranger.slug, deleted: true }, as)).workflows, [])
  await assert.rejects(restore(newId('wf')), refusal('NOT_FOUND'))
})

const age = (id: string) => c.db`
  update workflows set deleted_at = deleted_at - ${RESTORE_MS} * interval '1 millisecond' where id = ${id}`
const isThere = async (id: string) => (await c.db`select 1 from workflows where id = ${id}`).length > 0

test('after 30 days it goes for good, once its last run has ended', async () => {
  const { slug, id } = await aWorkflow(c)
  const run = await aRun(c, { workflow: slug })
  await remove(slug)
  await age(id)
  assert.ok(!(await ids(true)).includes(id))
  await assert.rejects(restore(id), refusal('NOT_FOUND'))
  const purgedAt = async () => {
    await purgeWorkflows(c.deps)
    const [row] = await c.db<{ purgedAt: Date | null }[]>`select purged_at from workflows where id = ${id}`
    return row?.purgedAt ?? null
  }
  assert.equal(await purgedAt(), null, 'it has an unfinished run')
  await c.call(ops.runs.cancel, { run: run.id })
  assert.ok((await purgedAt()) instanceof Date)
  await assert.rejects(c.call(ops.workflows.listVersions, { org: c.org, workflow: id }), refusal('NOT_FOUND'))
  // Its runs are shown with its name.
  assert.equal((await runOf(c, run.id)).workflow.slug, slug)
  const { auditEntries } = await c.call(ops.audit.list, { org: c.org, target: id, limit: 1 })
  assert.deepEqual([auditEntries[0]?.action, auditEntries[0]?.actor.kind], ['workflows.purge', 'system'])
})

test('one that stays for its runs keeps no other from going', async () => {
  const [stays, goes] = [await aWorkflow(c), await aWorkflow(c)]
  const run = await aRun(c, { workflow: stays.slug })
  for (const { id } of [stays, goes]) {
    await remove(id)
    await age(id)
  }
  await purgeWorkflows(c.deps, 1)
  assert.deepEqual([await isThere(stays.id), await isThere(goes.id)], [true, false])
  await c.call(ops.runs.cancel, { run: run.id })
})

test('one that never ran leaves nothing, and one that was deleted of late stays', async () => {
  const old = await aWorkflow(c)
  const late = await aWorkflow(c)
  for (const { id } of [old, late]) await remove(id)
  await age(old.id)
  await Promise.all([purgeWorkflows(c.deps), purgeWorkflows(c.deps)])
  assert.deepEqual([await isThere(old.id), await isThere(late.id)], [false, true])
  assert.equal((await restore(late.id)).id, late.id)
})
