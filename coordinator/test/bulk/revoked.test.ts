import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { ops } from '@windlass/shared/ops/index.ts'
import { until } from '@windlass/shared/test/_kit/until.ts'
import { retryPiece } from '../../bulk/retry-piece.ts'
import { findBare } from '../../bulk/store.ts'
import { aJob } from '../_kit/a-job.ts'
import { aCoordinator, anOrg, aRun, asOwner, type TestCoordinator } from '../_kit/coordinator.ts'
import { mintApiKey } from '../_kit/credentials.ts'
import { aWorkflow } from '../_kit/workflow.ts'

let c: TestCoordinator

before(async () => {
  c = await aCoordinator()
})
after(() => c.stop())

test('jobs end with the key that has asked for them, and a piece that was being prepared starts nothing', async () => {
  const o = asOwner(c, await anOrg(c, 'revoked'))
  await aWorkflow(o, { slug: 'any' })
  const { id: keyId, key } = await mintApiKey(o.db, { orgId: o.orgId, name: 'stolen', role: 'admin' })
  const jobOf = async (id: string) => (await o.call(ops.jobs.get, { job: id })).job
  const run = await aRun(o, { workflow: 'any' })
  await o.call(ops.runs.cancel, { run: run.id })
  const ask = { org: o.org, filter: { tag: 'none' } }
  const [stolen, others] = await Promise.all([
    o.call(ops.runs.bulkRetry, ask, { apiKey: key }),
    o.call(ops.runs.bulkCancel, ask),
  ])
  const jobs = [stolen.job, others.job]
  for (const { id } of jobs) await until('its end', async () => (await jobOf(id)).status !== 'running')
  await o.db`
    update bulk_jobs set status = 'running', finished_at = null where id = any(${jobs.map(({ id }) => id)})`
  await o.db`insert into bulk_job_runs (job_id, run_id) values (${stolen.job.id}, ${run.id})`
  const asItWas = (await findBare(o.db, stolen.job.id))!
  assert.equal((await o.call(ops.keys.revoke, { org: o.org, key: keyId })).jobs, 1)
  const after = await jobOf(stolen.job.id)
  assert.equal(after.status, 'cancelled')
  assert.match(after.error ?? '', /was revoked/)
  assert.equal((await jobOf(others.job.id)).status, 'running')
  await retryPiece(c.deps, asItWas)
  assert.equal((await o.db`select 1 from runs where retry_of = ${run.id}`).length, 0)
  assert.equal((await o.call(ops.keys.revoke, { org: o.org, key: keyId })).jobs, 0)
  const { auditEntries } = await o.call(ops.audit.list, { org: o.org, target: stolen.job.id })
  assert.equal(auditEntries[0]?.action, 'jobs.cancel')
})

test('the job of a deleted workflow is cancelled by nobody who may delete none', async () => {
  const o = asOwner(c, await anOrg(c, 'deleting'))
  const id = await aJob(o.db, o.orgId, 'workflow-delete')
  const cancel = async (of: Partial<Parameters<typeof mintApiKey>[1]>) => {
    const { key } = await mintApiKey(o.db, { orgId: o.orgId, name: 'any', role: 'admin', ...of })
    return (await o.call(ops.jobs.cancel, { job: id }, { apiKey: key })).job.status
  }
  await assert.rejects(cancel({ role: 'member' }), { code: 'FORBIDDEN' })
  await assert.rejects(cancel({ scopes: ['run:cancel'] }), { code: 'FORBIDDEN' })
  assert.equal((await findBare(o.db, id))!.status, 'running')
  assert.equal(await cancel({ scopes: ['run:cancel', 'workflow:delete'] }), 'cancelled')
})

test('a key that was revoked a moment ago elsewhere begins no job', async () => {
  const o = asOwner(c, await anOrg(c, 'late'))
  const { id, key } = await mintApiKey(o.db, { orgId: o.orgId, name: 'stolen', role: 'admin' })
  // From here on it is known to this coordinator, for a second.
  await o.call(ops.account.get, {}, { apiKey: key })
  await o.db`update api_keys set revoked_at = now() where id = ${id}`
  const ask = { org: o.org, filter: { all: true } as const }
  await assert.rejects(o.call(ops.runs.bulkRetry, ask, { apiKey: key }), { code: 'UNAUTHENTICATED' })
  assert.equal((await o.db`select from bulk_jobs where org_id = ${o.orgId}`).length, 0)
})
