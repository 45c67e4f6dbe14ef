import assert from 'node:assert/strict'
import { test } from 'node:test'
import { newId } from '@windlass/shared/ids.ts'
import { createLog } from '@windlass/shared/log.ts'
import { migrate } from '../../db/migrate.ts'
import { createVariableSets } from '../../environments/sets.ts'
import { testDatabase } from '../_kit/database.ts'
import { folderBefore } from '../_kit/earlier.ts'

const log = createLog({ part: 'test' }, 'error')

test('sets of an earlier release stay what they were for its runs, and new runs are given the same', async (t) => {
  const { folder, remove } = await folderBefore('0016')
  t.after(remove)
  const database = await testDatabase({ folder })
  t.after(() => database.close())
  const [orgId, other] = [newId('org'), newId('org')]
  const environments = ['', 'live', 'empty']
  const given = { '': { A: '1', B: 'org' }, live: { B: 'live', C: '3' }, empty: { A: '1', B: 'org' } }
  await database.db.begin(async (tx) => {
    await tx`insert into orgs (id, slug, name) values (${orgId}, 'one', 'One'), (${other}, 'two', 'Two')`
    await tx`
      insert into variables (org_id, environment, name, value, sealed, updated_by)
      values (${orgId}, '', 'A', '1', null, 'x'), (${orgId}, '', 'B', 'org', null, 'x'),
             (${orgId}, '', 'S', null, 'sealed', 'x'), (${orgId}, 'live', 'B', 'live', null, 'x'),
             (${orgId}, 'live', 'A', null, 'sealed', 'x'), (${orgId}, 'live', 'C', '3', null, 'x'),
             (${other}, '', 'A', 'other', null, 'x')`
    for (const environment of environments) {
      const set = JSON.stringify(given[environment as keyof typeof given])
      await tx`
        with made as (
          insert into variable_sets (org_id, variables) values (${orgId}, ${set}::text::json) returning id
        )
        insert into variable_heads (org_id, environment, set_id, has_secrets)
        select ${orgId}, ${environment}, id, true from made`
    }
    await tx`
      with made as (insert into variable_sets (org_id, variables) values (${other}, '{"A":"other"}') returning id)
      insert into variable_heads (org_id, environment, set_id, has_secrets) select ${other}, '', id, false from made`
  })
  const headsOf = () => database.db<{ orgId: string; environment: string; setId: string }[]>`
    select org_id, environment, set_id from variable_heads order by org_id = ${other}, environment`
  const before = await headsOf()
  await migrate(database, { log })
  const after = await headsOf()
  const sets = createVariableSets(database.db)
  const contents = (heads: typeof before) => Promise.all(heads.map(({ setId }) => sets.get(setId)))
  const expected = [given[''], given.empty, given.live, { A: 'other' }]
  assert.deepEqual(await contents(before), expected)
  assert.deepEqual(await contents(after), expected)
  assert.equal(after[0]!.setId, after[1]!.setId)
  const retired = await database.db<{ id: string }[]>`
    select id from variable_sets where retired_at is not null order by id`
  assert.deepEqual(
    retired.map(({ id }) => id),
    before.map(({ setId }) => setId).sort((a, b) => Number(a) - Number(b)),
  )
})
