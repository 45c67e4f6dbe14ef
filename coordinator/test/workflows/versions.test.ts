import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { newId, type VersionId } from '@windlass/shared/ids.ts'
import type { Db } from '../../db/client.ts'
import { createTargets, createVersions } from '../../workflows/targets.ts'
import { aCoordinator, type TestCoordinator } from '../_kit/coordinator.ts'
import { aWorkflow } from '../_kit/workflow.ts'

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void

let c: TestCoordinator

before(async () => {
  c = await aCoordinator()
})
after(() => c.stop())

test('a transaction that needs a version reads it itself: others like it may hold all connections', async () => {
  const { id } = await aWorkflow(c)
  const noOther = (() => assert.fail('a second connection')) as unknown as Db
  const [{ versionId }] = await c.db<[{ versionId: VersionId }]>`
    select id as version_id from workflow_versions where workflow_id = ${id}`
  const found = await c.db.begin((tx) => createVersions(noOther).get(versionId, tx))
  assert.equal(found.id, versionId)
})

test('all who ask for a version at once wait for one look at it', async () => {
  const { slug } = await aWorkflow(c)
  let looks = 0
  const counted = ((...args: Parameters<Db>) => {
    looks++
    return c.db(...args)
  }) as unknown as Db
  const targets = createTargets(counted, createVersions(counted))
  const found = await Promise.all(Array.from({ length: 50 }, () => targets.resolve(c.orgId, slug)))
  assert.ok(looks <= 4, `${looks} looks`)
  assert.ok(found.every((one) => one!.version === found[0]!.version))
})

test('versions with the largest schemas are remembered up to a bound, however many are asked for', async () => {
  const { id, slug } = await aWorkflow(c)
  const ids = Array.from({ length: 800 }, () => newId('ver'))
  await c.db`
    insert into workflow_versions (id, org_id, workflow_id, version, descriptor, input_schema, output_schema,
                                   bundle_digest, bundle_bytes, source_digest, created_by)
    select n.id, v.org_id, v.workflow_id, n.version + 1, v.descriptor, json_build_object('const', repeat('x', 120000)),
           v.output_schema, v.bundle_digest, v.bundle_bytes, v.source_digest, v.created_by
    from workflow_versions v
    cross join unnest(${ids}::text[]) with ordinality as n (id, version)
    where v.workflow_id = ${id}`
  const targets = createTargets(c.db, createVersions(c.db))
  const heapUsed = () => {
    collectGarbage()
    return process.memoryUsage().heapUsed / 1024 / 1024
  }
  const before = heapUsed()
  for (let n = 2; n <= 801; n++) {
    const found = await targets.resolve(c.orgId, slug, n)
    assert.equal(found?.version.version, n)
  }
  const grown = heapUsed() - before
  assert.ok(grown < 50, `${grown} MiB`)
  // What was let go is read again.
  assert.equal((await targets.resolve(c.orgId, slug, 2))?.version.version, 2)
})
