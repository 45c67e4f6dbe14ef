import assert from 'node:assert/strict'
import { test } from 'node:test'
import { newId } from '@windlass/shared/ids.ts'
import { createLog } from '@windlass/shared/log.ts'
import { migrate } from '../../db/migrate.ts'
import { testDatabase } from '../_kit/database.ts'
import { folderBefore } from '../_kit/earlier.ts'

const log = createLog({ part: 'test' }, 'error')

test('the upgrade takes values of variables out of the log, and leaves all else as it is', async (t) => {
  const { folder, remove } = await folderBefore('0010')
  t.after(remove)
  const database = await testDatabase({ folder })
  t.after(() => database.close())
  const { db } = database
  const orgId = newId('org')
  await db`insert into orgs (id, slug, name) values (${orgId}, 'acme', 'Acme')`
  const secret = { name: 'TOKEN', environment: null, value: 'hunter2' }
  const other = { name: 'pool', value: 'not a variable' }
  const entries = [['variables.set', secret] as const, ['pools.update', other] as const]
  for (const [action, facts] of entries)
    await db`
      insert into audit_log (id, org_id, actor_kind, actor_id, actor_name, via, action, target_type, target_id,
                             before, after)
      values (${newId('aud')}, ${orgId}, 'key', 'key_1', 'me', 'rest', ${action}, 'any', 'any', null,
              ${db.json(facts)})`
  await migrate(database, { log })
  const rows = await db<{ before: object | null; after: object }[]>`
    select before, after from audit_log order by id`
  assert.deepEqual(
    rows.map(({ before, after }) => ({ before, after })),
    [
      { before: null, after: { name: 'TOKEN', environment: null } },
      { before: null, after: other },
    ],
  )
  await assert.rejects(db`delete from audit_log`, { code: '42501' })
})
