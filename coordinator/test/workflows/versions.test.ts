import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import type { OrgId, VersionId } from '@windlass/shared/ids.ts'
import type { Db } from '../../db/client.ts'
import { createTargets, createVersions } from '../../workflows/targets.ts'
import { createTermsReader } from '../../workflows/terms.ts'
import { anOrg, aCoordinator, type TestCoordinator } from '../_kit/coordinator.ts'
import { countedDb } from '../_kit/counted-db.ts'
import { aWorkflow, copiesOf } from '../_kit/workflow.ts'

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void

let c: TestCoordinator

before(async () => {
  c = await aCoordinator()
})
after(() => c.stop())

const targetsOf = (db: Db) => createTargets(db, createVersions(db), createTermsReader(db))

test('all who ask for a version at once wait for one look at it', async () => {
  const { slug } = await aWorkflow(c)
  const counted = countedDb(c.db)
  const targets = targetsOf(counted.db)
  const found = await Promise.all(Array.from({ length: 50 }, () => targets.resolve(c.orgId, slug)))
  assert.ok(counted.looks() <= 4, `${counted.looks()} looks`)
  assert.ok(found.every((one) => one!.version === found[0]!.version))
})

test('versions with the largest schemas are remembered up to a bound, however many are asked for', async () => {
  const workflow = await aWorkflow(c)
  const { slug } = workflow
  await copiesOf(c, workflow, { count: 800, inputSchema: { const: 'x'.repeat(120_000) } })
  const targets = targetsOf(c.db)
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

test('of many versions few of an org are read at once, and few of all', async () => {
  const counted = countedDb(c.db)
  const versions = createVersions(counted.db)
  const ofOrgs: { orgId: OrgId; ids: VersionId[] }[] = []
  for (const name of ['one', 'two', 'three']) {
    const { id: orgId } = await anOrg(c, name)
    ofOrgs.push({ orgId, ids: await copiesOf(c, await aWorkflow(c, { orgId }), { count: 30 }) })
  }
  const [first, ...others] = ofOrgs.map(
    ({ orgId, ids }) =>
      () =>
        Promise.all(ids.map((id) => versions.get(orgId, id))),
  )
  await first!()
  assert.deepEqual([counted.looks(), counted.mostAtOnce()], [30, 2])
  await Promise.all(others.map((read) => read()))
  assert.deepEqual([counted.looks(), counted.mostAtOnce()], [90, 4])
})
