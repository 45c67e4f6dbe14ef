import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { newId, type VersionId } from '@windlass/shared/ids.ts'
import type { Db } from '../../db/client.ts'
import { createVersions } from '../../workflows/targets.ts'
import { createTermsReader } from '../../workflows/terms.ts'
import { aCoordinator, type TestCoordinator } from '../_kit/coordinator.ts'
import { countedDb } from '../_kit/counted-db.ts'
import { aWorkflow, copiesOf, spoilSchemas, type WorkflowAsk } from '../_kit/workflow.ts'

let c: TestCoordinator
before(async () => (c = await aCoordinator()))
after(() => c.stop())

async function versionOf(descriptor: NonNullable<WorkflowAsk['descriptor']> = {}): Promise<VersionId> {
  const { id } = await aWorkflow(c, { descriptor, inputSchema: { type: 'string' } })
  const [row] = await c.db<[{ id: VersionId }]>`select id from workflow_versions where workflow_id = ${id}`
  return row.id
}

const LIMITS = [
  { concurrency: 1 },
  { throttle: { limit: 1, per: '1m' } },
  { timeout: { active: '10m', wall: '7d', queue: '1.5h' }, cancelGrace: '7s', slots: 3, process: 'reuse' },
  { retries: { crash: 0, fence: 7, error: { max: 2, factor: 1.5, maxDelay: '3m' }, onCrash: 'fresh', onLost: 'hold' } },
  {},
]

test('the terms of a version are what the whole one says of them', async () => {
  for (const descriptor of LIMITS) {
    const id = await versionOf(descriptor)
    const terms = await createTermsReader(c.db).get(id)
    const { input, output: _, ...whole } = await createVersions(c.db).get(c.orgId, id)
    assert.ok(input, 'it has a schema')
    const names = Object.keys(terms.descriptor) as (keyof typeof terms.descriptor)[]
    const theirs = Object.fromEntries(names.map((name) => [name, whole.descriptor[name]]))
    assert.deepEqual(terms, { ...whole, descriptor: theirs })
  }
})

test('a descriptor of an earlier release has the terms that it had', async () => {
  const id = await versionOf()
  await c.db`
    update workflow_versions
    set descriptor = (descriptor::jsonb - '{slots,wallTimeoutMs,queueTimeoutMs,throttle,debounce,webhook}'::text[]
                      #- '{retries,fence}')::json
    where id = ${id}`
  const { descriptor, fenceRetries, isLimited } = await createTermsReader(c.db).get(id)
  const { slots, wallTimeoutMs, queueTimeoutMs } = descriptor
  assert.deepEqual([slots, wallTimeoutMs, queueTimeoutMs, fenceRetries, isLimited], [1, null, null, 20, false])
})

test('terms are read without schemas, by few statements, and each version once', async () => {
  const ids = await copiesOf(c, await aWorkflow(c), { count: 120 })
  await spoilSchemas(c, ids)
  const counted = countedDb(c.db)
  const reader = createTermsReader(counted.db)
  await Promise.all([reader.warm(ids), reader.warm(ids), reader.get(ids[0]!)])
  assert.deepEqual([counted.looks(), counted.mostAtOnce()], [3, 1])
  const found = await Promise.all(ids.map((id) => reader.get(id)))
  assert.deepEqual([found.map(({ id }) => id), counted.looks()], [ids, 3])
})

test('a transaction that needs terms reads them itself: others like it may hold all connections', async () => {
  const id = await versionOf()
  const noOther = (() => assert.fail('a second connection')) as unknown as Db
  const found = await c.db.begin((tx) => createTermsReader(noOther).get(id, tx))
  assert.equal(found.id, id)
})

test('a version that is missing is said so, and looked for again', async () => {
  const id = newId('ver')
  const counted = countedDb(c.db)
  const reader = createTermsReader(counted.db)
  await reader.warm([id])
  for (const looks of [2, 3]) {
    await assert.rejects(reader.get(id), { message: `version ${id} of a run is missing` })
    assert.equal(counted.looks(), looks)
  }
})
