import assert from 'node:assert/strict'
import { rename } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { ops } from '@windlass/shared/ops/index.ts'
import { contentKey } from '../../objects/key.ts'
import { bundleOf } from '../../workflows/read.ts'
import { anOrg, aCoordinatorOfItsOwn, refusal, type TestCoordinator } from '../_kit/coordinator.ts'
import { filesOf } from '../_kit/workflow-files.ts'

let c: TestCoordinator

before(async () => (c = await aCoordinatorOfItsOwn()))
after(() => c.stop())

// A 404 is final for an agent: the run would fail, though only the folder of this coordinator is not that of the other.
test('a bundle that lies with another coordinator is not gone, and the way out is told', async (t) => {
  const files = filesOf({ 'workflow.jsonc': '{ "slug": "elsewhere" }', 'index.ts': 'export const run = () => 1' })
  const { version } = await c.call(ops.workflows.create, { org: c.org, files })
  const file = join(c.deps.config.home, 'objects', contentKey(version.bundleDigest))
  await rename(file, `${file}.elsewhere`)
  t.after(() => rename(`${file}.elsewhere`, file))
  const share = (error: Error) => /one folder of objects, `objects` in WINDLASS_HOME/.test(error.message)
  await assert.rejects(bundleOf(c.deps, c.orgId, version.bundleDigest), (error: Error & { code?: string }) => {
    assert.deepEqual([error.code, share(error)], ['UNAVAILABLE', true])
    return true
  })
  // What no version of the org has is not there, wherever it lies.
  const stranger = await anOrg(c)
  await assert.rejects(bundleOf(c.deps, stranger.id, version.bundleDigest), { code: 'NOT_FOUND' })
})

test('a source that lies with another coordinator is told as such', async (t) => {
  const files = filesOf({ 'workflow.jsonc': '{ "slug": "source" }', 'index.ts': 'export const run = () => 2' })
  await c.call(ops.workflows.create, { org: c.org, files })
  const [row] = await c.db<[{ sourceDigest: string }]>`
    select source_digest from workflow_versions v join workflows w on w.id = v.workflow_id where w.slug = 'source'`
  const file = join(c.deps.config.home, 'objects', contentKey(row.sourceDigest))
  await rename(file, `${file}.elsewhere`)
  t.after(() => rename(`${file}.elsewhere`, file))
  await assert.rejects(c.call(ops.workflows.get, { org: c.org, workflow: 'source' }), refusal('UNAVAILABLE'))
})
