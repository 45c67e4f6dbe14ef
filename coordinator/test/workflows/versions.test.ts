import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { VersionId } from '@windlass/shared/ids.ts'
import type { Db } from '../../db/client.ts'
import { createVersions } from '../../workflows/targets.ts'
import { aCoordinator, type TestCoordinator } from '../_kit/coordinator.ts'
import { aWorkflow } from '../_kit/workflow.ts'

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
