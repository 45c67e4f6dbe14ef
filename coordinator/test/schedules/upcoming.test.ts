import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { upcoming } from '../../schedules/store-settle.ts'
import { aCoordinatorOfItsOwn, type TestCoordinator } from '../_kit/coordinator.ts'
import { rowsRead } from '../_kit/rows-read.ts'
import { aSchedule, copiesOf } from '../_kit/schedules.ts'
import { aWorkflow } from '../_kit/workflow.ts'

let c: TestCoordinator

before(async () => {
  c = await aCoordinatorOfItsOwn()
})
after(() => c.stop())

// Each org's first 400 were read: the look after an outage took the longer the more orgs there were.
test('a look reads little more than it brings, however many orgs have something due', async () => {
  const { slug } = await aWorkflow(c)
  const schedule = await aSchedule(c, { workflow: slug, rate: '1h' })
  const ids = [schedule.id, ...(await copiesOf(c, schedule, 49))]
  const back = new Error('nothing of it stays')
  const looking = c.db.begin(async (tx) => {
    await tx`
      insert into orgs
      select new.*
      from orgs o
      cross join generate_series(1, 100) as n
      cross join lateral jsonb_populate_record(o, jsonb_build_object('id', 'org_' || n, 'slug', 'org' || n)) as new
      where o.id = ${c.orgId}`
    await tx`
      insert into schedules
      select new.*
      from schedules s
      cross join generate_series(1, 100) as n
      cross join lateral jsonb_populate_record(
        s, jsonb_build_object('id', s.id || n, 'org_id', 'org_' || n, 'due_at', now() - interval '1 second')
      ) as new
      where s.id = any(${ids})`
    const here = { begin: (act: (sql: typeof tx) => unknown) => act(tx) } as never
    const { found, read } = await rowsRead(here, 'schedules', (db) => upcoming(db, 400))
    assert.equal(found, 400)
    assert.ok(read < 2500, `${read} rows were read`)
    throw back
  })
  await assert.rejects(looking, back)
})
