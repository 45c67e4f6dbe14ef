// A bulk retry whose answer was lost is sent again, and retries nothing twice.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { BulkFilter } from '@windlass/shared/model/job.ts'
import { ops } from '@windlass/shared/ops/index.ts'
import { until } from '@windlass/shared/test/_kit/until.ts'
import { anOrg, aCoordinator, aRun, asOwner, refusal, type TestCoordinator } from '../_kit/coordinator.ts'
import { aWorkflow } from '../_kit/workflow.ts'

let c: TestCoordinator

before(async () => {
  c = await aCoordinator()
})
after(() => c.stop())

/** An org with two runs that are cancelled. */
async function ours(): Promise<TestCoordinator> {
  const org = asOwner(c, await anOrg(c, 'keys'))
  await aWorkflow(org, { slug: 'any' })
  for (let n = 0; n < 2; n++) {
    const { id } = await aRun(org, { workflow: 'any' })
    await org.call(ops.runs.cancel, { run: id })
  }
  return org
}

const CANCELLED: BulkFilter = { status: ['cancelled'] }
const retry = async (o: TestCoordinator, more: { idempotencyKey?: string; filter?: BulkFilter; dryRun?: boolean }) =>
  (await o.call(ops.runs.bulkRetry, { org: o.org, filter: CANCELLED, ...more })).job
const ended = (o: TestCoordinator, job: string) =>
  until('the end of the job', async () => (await o.call(ops.jobs.get, { job })).job.status !== 'running')
const countRuns = async (o: TestCoordinator) => (await o.call(ops.runs.list, { org: o.org, limit: 100 })).runs.length

/** The status too: 202 for a new job, 200 for the first one. */
async function sent(o: TestCoordinator, body: object, headers: Record<string, string> = {}) {
  const answer = await fetch(`${c.url}/v1/orgs/${o.org}/runs/bulk-retry`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${o.apiKey}`, ...headers },
    body: JSON.stringify({ filter: CANCELLED, ...body }),
  })
  const { job } = (await answer.json()) as { job?: { id: string } }
  return [answer.status, job?.id]
}

test('the same request under the same key is answered with its job, also when that has ended', async () => {
  const o = await ours()
  const [first, second] = await Promise.all([sent(o, { idempotencyKey: 'once' }), sent(o, { idempotencyKey: 'once' })])
  assert.equal(first[1], second[1])
  assert.deepEqual(new Set([first[0], second[0]]), new Set([200, 202]))
  await ended(o, String(first[1]))
  assert.deepEqual(await sent(o, {}, { 'idempotency-key': 'once' }), [200, first[1]])
  assert.equal(await countRuns(o), 4)
  const { auditEntries } = await o.call(ops.audit.list, { org: o.org, target: String(first[1]) })
  assert.equal(auditEntries.filter(({ action }) => action === 'runs.bulkRetry').length, 1)
})

test('another request under a key that is taken is refused, and names the job of the first', async () => {
  const o = await ours()
  const { id } = await retry(o, { idempotencyKey: 'mine' })
  for (const other of [{ dryRun: true }, { filter: { all: true } as const }])
    await assert.rejects(retry(o, { idempotencyKey: 'mine', ...other }), {
      code: 'IDEMPOTENCY_CONFLICT',
      detail: { path: 'idempotencyKey', job: id },
    })
  await ended(o, id)
})

test('keys are those of one org, and of nobody who gives none', async () => {
  const [o, other] = [await ours(), await ours()]
  const [one, two] = [await retry(o, { idempotencyKey: 'both' }), await retry(other, { idempotencyKey: 'both' })]
  assert.notEqual(one.id, two.id)
  await Promise.all([ended(o, one.id), ended(other, two.id)])
  const again = await retry(o, {})
  await ended(o, again.id)
  assert.equal(await countRuns(o), 6)
})

test('a key that cannot be one is refused', async () => {
  const o = await ours()
  for (const idempotencyKey of ['', 'x'.repeat(256), '\0'])
    await assert.rejects(retry(o, { idempotencyKey }), refusal('VALIDATION_FAILED', 'idempotencyKey'))
})
