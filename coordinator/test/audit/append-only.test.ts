import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { ops } from '@windlass/shared/ops/index.ts'
import { entriesOf } from '../_kit/audit.ts'
import { aCoordinatorOfItsOwn, type TestCoordinator } from '../_kit/coordinator.ts'

let c: TestCoordinator

before(async () => {
  c = await aCoordinatorOfItsOwn()
  await c.call(ops.pools.create, { org: c.org, name: 'logged' })
})
after(() => c.stop())

// As the user of the database that the service itself has.
test('the log can be added to, and neither be changed nor shortened nor emptied', async () => {
  const logged = await entriesOf(c)
  assert.ok(logged.length > 0)
  const attempts = [
    () => c.db`update audit_log set actor_name = 'somebody else'`,
    () => c.db`update audit_log set after = null where id = ${logged[0]!.id}`,
    () => c.db`delete from audit_log where id = ${logged[0]!.id}`,
    () => c.db`truncate audit_log`,
    () => c.db`truncate orgs cascade`,
    () => c.db`
      insert into audit_log (id, org_id, actor_kind, actor_id, actor_name, via, action, target_type, target_id)
      select id, org_id, actor_kind, actor_id, 'somebody else', via, action, target_type, target_id
      from audit_log
      on conflict (id) do update set actor_name = excluded.actor_name`,
  ]
  for (const attempt of attempts) {
    await assert.rejects(attempt(), { code: '42501', message: 'the table audit_log is append-only' })
  }
  assert.deepEqual(await entriesOf(c), logged)
})

test('an org of which something is logged cannot be deleted', async () => {
  const holds = (error: Error & { constraint_name?: string; table_name?: string }) => {
    assert.deepEqual([error.table_name, error.constraint_name], ['audit_log', 'audit_log_org_id_fkey'])
    return true
  }
  const emptied = c.db.begin(async (tx) => {
    // All else that points to it, so that only the log is left to object.
    const tables = await tx<{ name: string }[]>`
      select distinct conrelid::regclass::text as name
      from pg_constraint
      where contype = 'f' and conrelid <> 'audit_log'::regclass and conrelid <> 'orgs'::regclass`
    for (const { name } of tables) await tx`alter table ${tx(name)} disable trigger all`
    for (const { name } of tables) await tx`delete from ${tx(name)}`
    await tx`delete from orgs`
  })
  await assert.rejects(emptied, holds)
  assert.equal((await c.call(ops.pools.list, { org: c.org })).runnerPools.length, 2)
})
