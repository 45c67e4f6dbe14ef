import assert from 'node:assert/strict'
import { test } from 'node:test'
import { newId } from '@windlass/shared/ids.ts'
import { createLog } from '@windlass/shared/log.ts'
import { migrate } from '../../db/migrate.ts'
import { testDatabase } from '../_kit/database.ts'
import { folderBefore } from '../_kit/earlier.ts'
import { assertInStep } from '../_kit/in-step.ts'

const log = createLog({ part: 'test' }, 'error')

test('the two counts of lost replays, which an earlier release kept in one number, come apart', async (t) => {
  const { folder, remove } = await folderBefore('0012')
  t.after(remove)
  const database = await testDatabase({ folder })
  t.after(() => database.close())
  const counts = [0, 5, 9000, 500_003]
  await database.db.begin(async (tx) => {
    // Only the runs matter here, not what they refer to.
    await tx`set local session_replication_role = replica`
    await tx`
      insert into runs (id, org_id, workflow_id, version_id, pool_id, status, trigger_kind, input, replays)
      select id, ${newId('org')}, ${newId('wf')}, ${newId('ver')}, ${newId('pool')}, 'sleeping', 'api', 'null', replays
      from unnest(${counts.map(() => newId('run'))}::text[], ${counts}::int[]) as made (id, replays)`
  })
  await migrate(database, { log })
  await assertInStep(database.db)
  const rows = await database.db<{ replays: number; cutReplays: number }[]>`
    select replays, cut_replays
    from runs
    order by cut_replays, replays`
  assert.deepEqual(
    rows.map(({ replays, cutReplays }) => [replays, cutReplays]),
    [
      [0, 0],
      [5, 0],
      [0, 9],
      [3, 500],
    ],
  )
})
