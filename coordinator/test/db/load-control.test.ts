import assert from 'node:assert/strict'
import { cp, mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { newId } from '@windlass/shared/ids.ts'
import { createLog } from '@windlass/shared/log.ts'
import { migrate } from '../../db/migrate.ts'
import { admit, remove } from '../../engine/store/concurrency.ts'
import { testDatabase } from '../_kit/database.ts'

const MIGRATIONS = join(import.meta.dirname, '../../db/migrations')

test('runs that count by one limit before the upgrade go on counting by it', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'windlass-migrations-'))
  t.after(() => rm(folder, { recursive: true }))
  const files = (await readdir(MIGRATIONS)).sort()
  const before = files.slice(
    0,
    files.findIndex((file) => file.endsWith('-load-control.sql')),
  )
  for (const file of before) await cp(join(MIGRATIONS, file), join(folder, file))
  const database = await testDatabase({ folder })
  t.after(() => database.close())
  const { db } = database
  const [org, workflow, keyed, plain, pool] = [newId('org'), newId('wf'), newId('ver'), newId('ver'), newId('pool')]
  await db`insert into orgs (id, slug, name) values (${org}, 'o', 'O')`
  await db`
    insert into workflows (id, org_id, slug, name, description, version)
    values (${workflow}, ${org}, 'w', 'W', '', 2)`
  const versions = [
    { id: keyed, concurrency: { limit: 2, key: 'input.customer.id' } },
    { id: plain, concurrency: { limit: 1, key: null } },
  ]
  for (const [i, { id, concurrency }] of versions.entries())
    await db`
      insert into workflow_versions (id, org_id, workflow_id, version, descriptor, input_schema, output_schema,
                                     warnings, bundle_digest, bundle_bytes, source_digest, created_by)
      values (${id}, ${org}, ${workflow}, ${i + 1}, ${JSON.stringify({ concurrency })}::text::json, '{}', '{}', '{}',
              '', 0, '', '')`
  const runs = [
    { id: newId('run'), version: keyed, group: `${workflow}/Xy0-_z`, table: 'concurrency_slots' },
    { id: newId('run'), version: keyed, group: `${workflow}/Xy0-_z`, table: 'concurrency_waiters' },
    { id: newId('run'), version: plain, group: workflow, table: 'concurrency_slots' },
    { id: newId('run'), version: plain, group: workflow, table: 'concurrency_waiters' },
    { id: newId('run'), version: plain, group: null, table: null },
  ]
  for (const { id, version, group, table } of runs) {
    await db`
      insert into runs (id, org_id, workflow_id, version_id, pool_id, status, trigger_kind, input, concurrency_group)
      values (${id}, ${org}, ${workflow}, ${version}, ${pool}, 'queued', 'api', '{}', ${group})`
    if (table === 'concurrency_slots')
      await db`insert into concurrency_slots (run_id, group_key) values (${id}, ${group})`
    if (table === 'concurrency_waiters')
      await db`
        insert into concurrency_waiters (run_id, group_key, pool_id, slots, priority)
        values (${id}, ${group}, ${pool}, 1, 0)`
  }
  await migrate(database, { log: createLog({ part: 'test' }, 'error') })
  const groups = await db<{ group: string | null }[]>`select concurrency_group as group from runs order by id`
  const customers = `${workflow}/customer.id/Xy0-_z`
  assert.deepEqual(
    groups.map(({ group }) => group),
    [`${customers}=2`, `${customers}=2`, `${workflow}=1`, `${workflow}=1`, null],
  )
  const counted = await db<{ key: string; taken: number }[]>`
    select group_key as key, taken from concurrency_groups order by taken, length(group_key)`
  assert.deepEqual(
    counted.map(({ key, taken }) => [key, taken]),
    [
      [workflow, 1],
      [customers, 1],
    ],
  )
  const admitted = await db.begin(async (tx) => {
    await remove(tx, [runs[0]!.id, runs[2]!.id])
    return admit(tx, [customers, workflow])
  })
  assert.equal(admitted.length, 2)
  const slots = await db<{ runId: string }[]>`select run_id from concurrency_slots order by run_id`
  assert.deepEqual(
    slots.map(({ runId }) => runId),
    [runs[1]!.id, runs[3]!.id],
  )
})
