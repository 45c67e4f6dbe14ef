// Looks that nobody makes often, and that must not read the rows of all orgs for it.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { newId } from '@windlass/shared/ids.ts'
import { ops } from '@windlass/shared/ops/index.ts'
import type { Db, Tx } from '../../db/client.ts'
import { eraseCopies } from '../../engine/store/erase.ts'
import { strays } from '../../engine/store/orphans.ts'
import { givePositions, keep } from '../../events/store-org-log.ts'
import { countUnfinished } from '../../environments/store.ts'
import * as store from '../../runners/store-pools.ts'
import { ownsBundle } from '../../workflows/store.ts'
import { aCoordinatorOfItsOwn, anOrg, type TestCoordinator } from '../_kit/coordinator.ts'
import { rowsRead } from '../_kit/rows-read.ts'
import { aWorkflow } from '../_kit/workflow.ts'

const OTHERS = 2000

let c: TestCoordinator

before(async () => {
  c = await aCoordinatorOfItsOwn()
})
after(() => c.stop())

/** Fails when the look reads more than a few rows; what it answers does not matter. */
async function readsLittle(table: string, look: (db: Db) => Promise<unknown>): Promise<void> {
  const { read } = await rowsRead(c.db, table, async (db) => {
    await look(db)
    return []
  })
  assert.ok(read <= 3, `${read} rows of ${table} were read`)
}

test('whether an org has a bundle is looked up among its own', async () => {
  const { id } = await aWorkflow(c)
  const [{ bundleDigest }] = await c.db<[{ bundleDigest: string }]>`
    select bundle_digest from workflow_versions where workflow_id = ${id}`
  await c.db`
    insert into workflow_versions (id, org_id, workflow_id, version, descriptor, input_schema, output_schema,
                                   bundle_digest, bundle_bytes, source_digest, created_by)
    select 'wv_' || lpad(n::text, 26, '0'), v.org_id, v.workflow_id, v.version + n, v.descriptor, v.input_schema,
           v.output_schema, 'other-' || n, 1, '', v.created_by
    from workflow_versions v
    cross join generate_series(1, ${OTHERS}::int) n
    where v.workflow_id = ${id}`
  assert.equal(await ownsBundle(c.db, c.orgId, bundleDigest), true)
  assert.equal(await ownsBundle(c.db, (await anOrg(c)).id, bundleDigest), false)
  await readsLittle('workflow_versions', (db) => ownsBundle(db, c.orgId, bundleDigest))
})

test('the copies of a run that is erased are found by the run', async () => {
  const run = newId('run')
  await c.db`
    insert into org_events (org_id, run_id, cursor, at, type, data, position)
    select ${c.orgId}, case n when 1 then ${run} else 'run_' || n end, 1, 0, 'run.queued', '{}', n
    from generate_series(1, ${OTHERS}::int) n`
  await readsLittle('org_events', (db) => eraseCopies(db, c.orgId, run))
  const left = await c.db<[{ n: number }]>`select count(*)::int as n from org_events where org_id = ${c.orgId}`
  assert.equal(left[0].n, OTHERS - 1)
})

test('positions are given to some of the events that wait for one without reading the others', async () => {
  const { id: orgId } = await anOrg(c)
  await keep(c.db, orgId, 'series')
  await c.db`
    insert into org_events (org_id, run_id, cursor, at, type, data)
    select ${orgId}, 'run_' || n, 1, 0, 'run.queued', '{}'
    from generate_series(1, ${OTHERS}::int) n`
  const { read } = await rowsRead(c.db, 'org_events', async (db) => {
    const tx = db as unknown as Tx
    await givePositions(Object.assign(db, { begin: tx.savepoint.bind(tx) }), orgId, 10)
    return []
  })
  assert.ok(read <= 3 * 10, `${read} rows were read for 10 positions`)
  assert.deepEqual(await givePositions(c.db, orgId, 10), { given: 10, last: 20 })
  const rows = await c.db<{ run: string }[]>`
    select run_id as run from org_events where org_id = ${orgId} and position is not null order by position`
  assert.deepEqual(
    rows.map(({ run }) => run),
    Array.from({ length: 20 }, (_, n) => `run_${n + 1}`),
  )
})

test('the sweep passes over questions that were answered', async () => {
  await c.db`
    insert into inputs (id, org_id, run_id, n, prompt, status, closed_at)
    select 'inp_' || n, ${c.orgId}, 'run_' || lpad(n::text, 26, '0'), 1, '',
           case when n > ${OTHERS} then 'open' else 'answered' end, case when n > ${OTHERS} then null else now() end
    from generate_series(1, 2 * ${OTHERS}::int) n`
  await c.db`analyze inputs`
  const page = { after: '', limit: 10 }
  const { read } = await rowsRead(c.db, 'inputs', async (db) => (await strays(db, 'stray_question', page)).findings)
  assert.ok(read <= 2 * page.limit, `${read} rows were read for a page of ${page.limit}`)
})

test('what stands against deleting an environment or a pool is looked for in the org itself', async () => {
  const other = await anOrg(c)
  await c.db`
    insert into runs_remaining (run_id, org_id)
    select 'run_' || lpad(n::text, 26, '0'), ${other.id}
    from generate_series(1, ${OTHERS}::int) n`
  await c.call(ops.environments.create, { org: c.org, name: 'spare' })
  await c.call(ops.pools.create, { org: c.org, name: 'spare' })
  const [pool] = await c.db<[store.LockedPool]>`select * from runner_pools where name = 'spare'`
  await readsLittle('runs_remaining', (db) =>
    countUnfinished(db as unknown as Tx, { orgId: c.orgId, environment: 'spare' }, 10),
  )
  await readsLittle('runs_remaining', (db) =>
    store.useOf(db as unknown as Tx, c.orgId, pool, { runs: 10, workflows: 10 }),
  )
})

test('what stands against deleting an environment or a pool is looked for among what is in it', async () => {
  const { id: orgId } = await anOrg(c)
  await c.db`
    insert into runs_remaining (run_id, org_id, environment, pool_id)
    select 'run_' || 'x' || lpad(n::text, 25, '0'), ${orgId}, 'busy', 'pool_busy'
    from generate_series(1, ${OTHERS}::int) n`
  await readsLittle('runs_remaining', (db) => countUnfinished(db as unknown as Tx, { orgId, environment: 'spare' }, 10))
  const pool: store.LockedPool = { id: newId('pool'), name: 'spare', settings: {} }
  await readsLittle('runs_remaining', (db) =>
    store.useOf(db as unknown as Tx, orgId, pool, { runs: 10, workflows: 10 }),
  )
})
