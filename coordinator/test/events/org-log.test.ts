import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { newId, type OrgId } from '@windlass/shared/ids.ts'
import type { Db, Tx } from '../../db/client.ts'
import { insert, type NewEvent } from '../../events/store.ts'
import { givePositions, keep } from '../../events/store-org-log.ts'
import { dropInvariants, testDatabase } from '../_kit/database.ts'

let db: Db
let database: Awaited<ReturnType<typeof testDatabase>>
before(async () => {
  database = await testDatabase()
  db = database.db
  await dropInvariants(db)
})
after(() => database.close())

async function aFollowedOrg(): Promise<OrgId> {
  const org = newId('org')
  await db`insert into orgs (id, slug, name) values (${org}, ${org.toLowerCase().replace('_', '-')}, 'Followed')`
  await keep(db, org, 'abcabcabcabc')
  return org
}

const someEvents = (orgId: OrgId, count: number): NewEvent[] =>
  Array.from({ length: count }, (_, i) => ({
    runId: newId('run'),
    orgId,
    cursor: i + 1,
    at: i,
    channel: 'lifecycle',
    type: 'run.completed',
    dataText: '{}',
  }))

/** How often this transaction has looked for rows of `org_logs`, in the table or by an index. */
async function looks(tx: Tx): Promise<number> {
  const [row] = await tx<[{ scans: number }]>`
    select sum(pg_stat_get_xact_numscans(oid))::int as scans
    from pg_class
    where oid = 'org_logs'::regclass
       or oid in (select indexrelid from pg_index where indrelid = 'org_logs'::regclass)`
  return row.scans
}

/** While somebody dumps, a row keeps all the versions that it has had, and each look passes through them. */
test('events look up the row of their log once, however many they are', async () => {
  const org = await aFollowedOrg()
  const looksFor = (count: number) =>
    db.begin(async (tx) => {
      const before = await looks(tx)
      await insert(tx, someEvents(org, count))
      return (await looks(tx)) - before
    })
  const looksForMany = await looksFor(250)
  assert.ok(looksForMany >= 1 && looksForMany < 10, `${looksForMany} looks`)
})

test('positions are given in the order of writing, and nothing is written where none is missing', async () => {
  const org = await aFollowedOrg()
  const version = async () =>
    (await db<[{ xmin: string }]>`select xmin::text from org_logs where org_id = ${org}`)[0].xmin
  await db.begin((tx) => insert(tx, someEvents(org, 5)))
  assert.deepEqual(await givePositions(db, org, 3), { given: 3, last: 3 })
  assert.deepEqual(await givePositions(db, org, 3), { given: 2, last: 5 })
  const stands = await version()
  assert.deepEqual(await givePositions(db, org, 3), { given: 0, last: 5 })
  assert.equal(await version(), stands)
  const rows = await db<{ cursor: number }[]>`select cursor from org_events where org_id = ${org} order by position`
  assert.deepEqual(
    rows.map(({ cursor }) => cursor),
    [1, 2, 3, 4, 5],
  )
})

test('an org that nobody follows has no log', async () => {
  assert.deepEqual(await givePositions(db, newId('org'), 3), { given: 0, last: 0 })
})
