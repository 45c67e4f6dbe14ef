import assert from 'node:assert/strict'
import { test } from 'node:test'
import { newId } from '@windlass/shared/ids.ts'
import { createLog } from '@windlass/shared/log.ts'
import { migrate } from '../../db/migrate.ts'
import { testDatabase } from '../_kit/database.ts'
import { folderBefore } from '../_kit/earlier.ts'
import { assertInStep } from '../_kit/in-step.ts'

const log = createLog({ part: 'test' }, 'error')

test('runs of an earlier release are found by lists by status and tag', async (t) => {
  const { folder, remove } = await folderBefore('0007')
  t.after(remove)
  const database = await testDatabase({ folder })
  t.after(() => database.close())
  const statuses = ['failed', 'cancelled', 'completed', 'queued']
  await database.db.begin(async (tx) => {
    // Only the runs matter here, not what they refer to.
    await tx`set local session_replication_role = replica`
    await tx`
      insert into runs (id, org_id, workflow_id, version_id, pool_id, status, trigger_kind, tags, input, output, error,
                        finished_at)
      select id, ${newId('org')}, ${newId('wf')}, ${newId('ver')}, ${newId('pool')}, status, 'api', '{nightly,eu,nightly}', 'null',
             case when status = 'completed' then 'null' end, case when status = 'failed' then '{}' end,
             case when status <> 'queued' then now() end
      from unnest(${statuses.map(() => newId('run'))}::text[], ${statuses}::text[]) as made (id, status)`
  })
  await migrate(database, { log })
  await assertInStep(database.db)
  const [row] = await database.db<[{ tags: number; unsuccessful: number }]>`
    select (select count(*)::int from run_tags) as tags, (select count(*)::int from runs_unsuccessful) as unsuccessful`
  assert.deepEqual(row, { tags: 8, unsuccessful: 2 })
})
