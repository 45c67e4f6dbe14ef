import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { ops } from '@windlass/shared/ops/index.ts'
import type { Sql } from '../../../db/client.ts'
import { admit } from '../../../engine/store/concurrency.ts'
import { sweepRunsOnce } from '../../../engine/sweep/sweep.ts'
import { aCoordinatorOfItsOwn, aRun, type TestCoordinator } from '../../_kit/coordinator.ts'
import { dropInvariants } from '../../_kit/database.ts'
import { aWorkflow } from '../../_kit/workflow.ts'

let c: TestCoordinator

before(async () => {
  c = await aCoordinatorOfItsOwn()
})
after(() => c.stop())

const noted = async (sql: Sql, key: string) => {
  const [row] = await sql<{ taken: number }[]>`select taken from concurrency_groups where group_key = ${key}`
  return row?.taken
}

test('the database keeps the number of the slots of a group, whoever changes them', async () => {
  const key = 'by hand'
  await c.db`
    insert into concurrency_slots (run_id, group_key)
    select 'run_' || i, ${key} from generate_series(1, 5) i`
  assert.equal(await noted(c.db, key), 5)
  await c.db`
    insert into concurrency_slots (run_id, group_key)
    select 'run_' || i, ${key} from generate_series(4, 6) i
    on conflict (run_id, group_key) do nothing`
  assert.equal(await noted(c.db, key), 6)
  await c.db`update concurrency_slots set group_key = 'another' where group_key = ${key} and run_id < 'run_3'`
  assert.deepEqual([await noted(c.db, key), await noted(c.db, 'another')], [4, 2])
  await c.db`delete from concurrency_slots where run_id in ('run_3', 'run_1')`
  assert.deepEqual([await noted(c.db, key), await noted(c.db, 'another')], [3, 1])
  await c.db`delete from concurrency_slots where group_key in (${key}, 'another')`
  assert.deepEqual([await noted(c.db, key), await noted(c.db, 'another')], [undefined, undefined])
})

test('a run is let in without a look at those that count already', async () => {
  const { id: group, slug } = await aWorkflow(c, { descriptor: { concurrency: 100_000 } })
  const { id } = await aRun(c, { workflow: slug })
  const notForGood = new Error('not for good')
  const tried = c.db.begin(async (tx) => {
    await tx`
      insert into concurrency_slots (run_id, group_key)
      select 'run_' || i, ${group} from generate_series(1, 5000) i`
    await tx`delete from concurrency_slots where run_id = ${id}`
    await tx`
      insert into concurrency_waiters (run_id, group_key, pool_id, slots, priority, needs)
      select id, ${group}, pool_id, 100000, priority, needs from runs where id = ${id}`
    const before = await read(tx)
    assert.equal((await admit(tx, [group])).length, 1)
    assert.equal(await read(tx), before)
    throw notForGood
  })
  await assert.rejects(tried, notForGood)
  await c.call(ops.runs.cancel, { run: id })
})

/** Entries of the index of groups that this transaction has read. */
async function read(tx: Sql): Promise<number> {
  const [{ count }] = await tx<[{ count: number }]>`
    select pg_stat_get_xact_tuples_returned('concurrency_slots_by_group'::regclass)::int as count`
  return count
}

test('the sweep counts a group anew of which too many slots are noted, and lets in who waits for it', async () => {
  await dropInvariants(c.db)
  const { id: group, slug } = await aWorkflow(c, { descriptor: { concurrency: 2 } })
  const first = await aRun(c, { workflow: slug })
  await c.db`update concurrency_groups set taken = 2 where group_key = ${group}`
  const second = await aRun(c, { workflow: slug })
  const queued = async () => (await c.db`select from run_queue where run_id = ${second.id}`).length === 1
  assert.equal(await queued(), false)
  // The number, and the run that waits where there is room.
  assert.equal(await sweepRunsOnce(c.deps), 2)
  assert.equal(await queued(), true)
  assert.equal(await noted(c.db, group), 2)
  const text = await (await fetch(`${c.url}/metrics`)).text()
  assert.match(text, /windlass_orphans_total\{kind="group_miscounted"\} 1\n/)
  // One whose row is gone, and one that has nothing but a row.
  await c.db`delete from concurrency_groups where group_key = ${group}`
  await c.db`insert into concurrency_groups (group_key, taken) values ('none', 3)`
  assert.equal(await sweepRunsOnce(c.deps), 2)
  assert.deepEqual([await noted(c.db, group), await noted(c.db, 'none')], [2, undefined])
  for (const run of [first, second]) await c.call(ops.runs.cancel, { run: run.id })
  assert.equal(await noted(c.db, group), undefined)
  assert.equal(await sweepRunsOnce(c.deps), 0)
})
