import assert from 'node:assert/strict'
import { after, beforeEach, test } from 'node:test'
import { createLog } from '@windlass/shared/log.ts'
import { noteRestored } from '../../admin/cluster.ts'
import { openAdmin } from '../../admin/open.ts'
import { ensureDefaults } from '../../accounts/bootstrap.ts'
import { openCluster, restoredAgo, restoredSince } from '../../db/cluster.ts'
import { testDatabase } from '../_kit/database.ts'

const database = await testDatabase()
const { db } = database
after(() => database.close())
const log = createLog({ part: 'test' }, 'error')
const SERIES = 'a'.repeat(12)

beforeEach(async () => {
  const orgId = await ensureDefaults(db)
  await db`delete from org_logs`
  await db`insert into org_logs (org_id, series, kept_until) values (${orgId}, ${SERIES}, now())`
  await db`delete from signing_keys`
  await db`insert into signing_keys (purpose, kid, public_jwk, expires_at) values ('run', 'old', '{}', now())`
})

/** What would let somebody go on from before. */
async function left() {
  const [row] = await db<[{ keys: number; series: string }]>`
    select (select count(*)::int from signing_keys) as keys, (select series from org_logs)`
  return row
}

test('an epoch lasts over starts on the same server', async (t) => {
  const said = t.mock.method(log, 'warn', () => {})
  const epoch = await openCluster(db, log)
  assert.match(epoch, /^[0-9a-f]{16}$/)
  assert.equal(await openCluster(db, log), epoch)
  assert.equal(await restoredSince(db, epoch), undefined)
  assert.deepEqual(await left(), { keys: 1, series: SERIES })
  assert.equal(said.mock.callCount(), 0)
})

test('a database that was restored into another place begins a new epoch, once', async (t) => {
  const said = t.mock.method(log, 'warn', () => {})
  const before = await openCluster(db, log)
  // As its dump has it.
  await db`update cluster set system = '7000000000000000000/5'`
  const starts = await Promise.all([openCluster(db, log), openCluster(db, log)])
  assert.equal(new Set(starts).size, 1)
  assert.notEqual(starts[0], before)
  assert.deepEqual(
    said.mock.calls.map(({ arguments: [name] }) => name),
    ['cluster.restored'],
  )
  const { keys, series } = await left()
  assert.equal(keys, 0)
  assert.match(series, /^[0-9a-f]{12}$/)
  assert.notEqual(series, SERIES)
})

test('a dump that is restored into the same database begins a new epoch, once', async () => {
  const before = await openCluster(db, log)
  await db`create table dumped as table cluster`
  await db`drop table cluster`
  await db`alter table dumped rename to cluster`
  const epoch = await openCluster(db, log)
  assert.notEqual(epoch, before)
  assert.equal((await left()).keys, 0)
  assert.equal(await openCluster(db, log), epoch)
})

test('what a coordinator of before has noted is no restore', async () => {
  const before = await openCluster(db, log)
  await db`update cluster set noted_in = null`
  assert.equal(await openCluster(db, log), before)
  const [row] = await db<[{ isNoted: boolean }]>`select noted_in = tableoid as is_noted from cluster`
  assert.ok(row.isNoted)
})

test('an operator says that a database was set back, and coordinators that run are told to start again', async () => {
  const before = await openCluster(db, log)
  const admin = await openAdmin({ databaseUrl: database.url, user: 'op@host' })
  const epoch = await noteRestored(admin)
  await admin.close()
  assert.notEqual(epoch, before)
  assert.match((await restoredSince(db, before)) ?? '', /was restored .* start again/)
  assert.equal(await openCluster(db, log), epoch)
  assert.equal((await left()).keys, 0)
  const entries = await db<{ actorId: string; orgs: number }[]>`
    select actor_id, count(distinct org_id)::int as orgs
    from audit_log
    where action = 'cluster.restored'
    group by 1`
  const [{ orgs } = { orgs: 0 }] = await db<{ orgs: number }[]>`select count(*)::int as orgs from orgs`
  assert.ok(orgs > 0)
  assert.deepEqual([...entries], [{ actorId: 'op@host', orgs }])
})

test('a restored dump of which an operator has said so is not noticed once more, and no run waits', async (t) => {
  const said = t.mock.method(log, 'warn', () => {})
  await openCluster(db, log)
  // As a dump in another place has it.
  await db`update cluster set system = '7000000000000000000/5', noted_in = 1`
  const admin = await openAdmin({ databaseUrl: database.url, user: 'op@host' })
  const epoch = await noteRestored(admin, { areAgentsStopped: true })
  await admin.close()
  assert.equal(await openCluster(db, log), epoch)
  assert.equal(await restoredAgo(db), undefined)
  assert.equal(said.mock.callCount(), 0)
})
