import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { ops } from '@windlass/shared/ops/index.ts'
import { untilPolled } from '@windlass/shared/test/_kit/until.ts'
import { workOnBulk } from '../../../bulk/work.ts'
import { admit, MOST_ADMITTED } from '../../../engine/store/concurrency.ts'
import { forgottenWaiters } from '../../../engine/store/orphans.ts'
import { aCoordinator, aRun, type TestCoordinator } from '../../_kit/coordinator.ts'
import { aWorkflow } from '../../_kit/workflow.ts'

let c: TestCoordinator

before(async () => {
  c = await aCoordinator()
})
after(() => c.stop())

test('a line with much room is let in whole, by statements that look at few each', async () => {
  const { id: group, slug } = await aWorkflow(c, { descriptor: { concurrency: 1 } })
  const first = await aRun(c, { workflow: slug })
  const limit = 3 * MOST_ADMITTED
  const others = await Promise.all(Array.from({ length: limit }, () => aRun(c, { workflow: slug })))
  const ids = others.map(({ id }) => id)
  // As if their version had allowed more.
  await c.db`update concurrency_waiters set slots = ${limit} where run_id = any(${ids})`
  const notForGood = new Error('not for good')
  const tried = c.db.begin(async (tx) => {
    await tx`delete from concurrency_slots where run_id = ${first.id}`
    assert.equal((await admit(tx, [group])).length, MOST_ADMITTED)
    throw notForGood
  })
  await assert.rejects(tried, notForGood)
  await c.call(ops.runs.cancel, { run: first.id })
  const [{ queued }] = await c.db<[{ queued: number }]>`
    select count(*)::int as queued from run_queue where run_id = any(${ids})`
  assert.equal(queued, limit)
})

/** Behind runs that hold the only slot of their lines: lines whose versions allow more than there will ever be. */
async function linesBehind(count: number, each: number) {
  const key = { limit: 1, key: 'input.k' }
  const { slug } = await aWorkflow(c, { descriptor: { concurrency: key } })
  const holders = await Promise.all(
    Array.from({ length: count }, (_, k) => aRun(c, { workflow: slug, input: { k } }).then(({ id }) => id)),
  )
  await c.db`
    insert into concurrency_waiters (run_id, group_key, pool_id, slots, rest, priority, needs)
    select 'run_' || lpad(to_hex(row_number() over ()), 26, '0'), s.group_key, r.pool_id, 100000, null, 0, ''
    from concurrency_slots s
    join runs r on r.id = s.run_id
    cross join generate_series(1, ${each}) i
    where s.run_id = any(${holders})`
  const groups = await c.db<{ key: string }[]>`
    select group_key as key from concurrency_slots where run_id = any(${holders})`
  return { slug, keys: groups.map(({ key: one }) => one) }
}

test('many lines that move at once let in no more than one would, and a job lets in the others', async () => {
  const [lines, each] = [20, 400]
  const { slug, keys } = await linesBehind(lines, each)
  const waiting = async () => {
    const [{ count }] = await c.db<[{ count: number }]>`
      select count(*)::int as count from concurrency_waiters where group_key = any(${keys})`
    return count
  }
  const forgotten = async () => (await forgottenWaiters(c.db, { after: '', limit: 1000 })).findings
  // Jobs of the org are held up: nobody but the transaction of the cancel lets anybody in meanwhile.
  await c.db`
    insert into graphile_worker._private_job_queues (queue_name, locked_at, locked_by)
    values (${c.orgId}, now(), 'a test')`
  assert.equal(await waiting(), lines * each)
  const { job } = await c.call(ops.runs.bulkCancel, { org: c.org, filter: { workflow: slug } })
  await workOnBulk(c.deps, job.id)
  await untilPolled('the first of them are in', async () => (await waiting()) < lines * each)
  // The last statement may let in one of each line.
  assert.ok((await waiting()) > lines * each - 2048 - lines, `${await waiting()} wait still`)
  assert.deepEqual(await forgotten(), [], 'a job is to let them in')
  await c.db`
    update graphile_worker._private_job_queues set locked_at = null, locked_by = null where queue_name = ${c.orgId}`
  await untilPolled('all of them are in', async () => (await waiting()) === 0)
  assert.equal((await c.db`select from concurrency_rest`).length, 0)
})
