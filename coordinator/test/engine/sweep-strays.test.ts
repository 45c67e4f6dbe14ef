import assert from 'node:assert/strict'
import { after, afterEach, test } from 'node:test'
import type { RunId } from '@windlass/shared/ids.ts'
import { ops } from '@windlass/shared/ops/index.ts'
import { sweepRunsOnce } from '../../engine/sweep/sweep.ts'
import { end, returned, start } from '../_kit/agent.ts'
import { aRun } from '../_kit/coordinator.ts'
import { aSweptCoordinator, CALL } from '../_kit/swept.ts'

const swept = await aSweptCoordinator()
const { c, agent, link, queueRow, timersOf, statusOf, placed, finds } = swept
const { offered, evicted, clear } = swept
afterEach(clear)
after(() => swept.stop())

test('rows of runs that are over, or that do not exist, are taken away', async () => {
  const { offer } = await offered()
  await link.report(offer, 1, start(), end(returned(null)))
  for (const id of [offer.run, 'run_never_was']) {
    await c.db`insert into run_queue (run_id, pool_id, priority) values (${id}, ${c.poolId}, 0)`
    await c.db`insert into placements (run_id, runner_id, epoch, lease_expires_at) values (${id}, ${agent.id}, 1, now() + interval '1 hour')`
    await c.db`
      insert into timers (run_id, org_id, kind, due_at)
      values (${id}, ${c.orgId}, 'wall-timeout', now() + interval '1 hour')`
    await c.db`insert into inputs (id, org_id, run_id, n, prompt) values (${`inp_${id}`}, ${c.orgId}, ${id}, 1, 'Sure?')`
    await c.db`insert into concurrency_slots (run_id, group_key) values (${id}, 'g')`
    await finds('stray_queue_row', 'stray_placement', 'stray_timer', 'stray_question', 'stray_slot')
    assert.equal(await queueRow(id), undefined)
    assert.equal(await placed(id), false)
    assert.equal((await timersOf(id)).length, 0)
  }
  assert.equal(await statusOf(offer.run), 'completed')
})

test('rows that do not suit the state of their run are taken away', async () => {
  const executing = await offered()
  await link.report(executing.offer, 1, start())
  const asleep = await evicted()
  await c.db`insert into run_queue (run_id, pool_id, priority, is_resume) values (${executing.offer.run}, ${c.poolId}, 0, true)`
  await c.db`insert into placements (run_id, runner_id, epoch, lease_expires_at) values (${asleep}, ${agent.id}, 1, now() + interval '1 hour')`
  await c.db`
    insert into timers (run_id, org_id, kind, n, due_at)
    values (${asleep}, ${c.orgId}, 'sleep', 7, now() + interval '1 hour'),
           (${executing.offer.run}, ${c.orgId}, 'enqueue', 0, now() + interval '1 hour')`
  await c.db`insert into concurrency_slots (run_id, group_key) values (${asleep}, 'g')`
  await finds('stray_queue_row', 'stray_placement', 'stray_timer', 'stray_timer', 'stray_slot')
  assert.deepEqual(
    (await timersOf(asleep)).map(({ kind, n }) => [kind, n]),
    [['sleep', 1]],
  )
  await link.report(executing.offer, 2, end(returned(null)))
  assert.equal(await statusOf(executing.offer.run), 'completed')
})

test('a row that a claim is just taking away is no stray, and one that it leaves behind is', async () => {
  const { id } = await aRun(c, { workflow: 'any' })
  const held = Promise.withResolvers<void>()
  const over = Promise.withResolvers<void>()
  // A claim locks the row, then waits for the run.
  const claim = c.db.begin(async (tx) => {
    await tx`select from run_queue where run_id = ${id} for update`
    held.resolve()
    await over.promise
  })
  await held.promise
  await c.call(ops.runs.cancel, { run: id })
  assert.ok(await queueRow(id))
  await finds()
  over.resolve()
  await claim
  await finds('stray_queue_row')
  assert.equal(await queueRow(id), undefined)
})

test('a run that waits for room where there is some is let in', async () => {
  const first = await aRun(c, { workflow: 'narrow' })
  const second = await aRun(c, { workflow: 'narrow' })
  assert.equal(await queueRow(second.id), undefined)
  await c.db`delete from run_queue where run_id = ${first.id}`
  await c.db`delete from concurrency_slots where run_id = ${first.id}`
  await c.db`update runs set status = 'cancelled', finished_at = now() where id = ${first.id}`
  await finds('waiter_with_room')
  assert.deepEqual(await queueRow(second.id), { isResume: false })
})

test('the slot of a run that is over goes to the next', async () => {
  const first = await aRun(c, { workflow: 'narrow' })
  const second = await aRun(c, { workflow: 'narrow' })
  await c.db`delete from run_queue where run_id = ${first.id}`
  await c.db`update runs set status = 'cancelled', finished_at = now() where id = ${first.id}`
  await finds('stray_slot')
  assert.deepEqual(await queueRow(second.id), { isResume: false })
})

test('a run that is cancelled just when its child ends leaves nothing in the queue', async () => {
  for (let i = 0; i < 10; i++) {
    const parent = await evicted(CALL)
    const [child] = await c.db<[{ id: RunId }]>`select id from runs where parent_run_id = ${parent}`
    await Promise.all([parent, child.id].map((run) => c.call(ops.runs.cancel, { run })))
    assert.equal(await queueRow(parent), undefined)
  }
  assert.equal(await sweepRunsOnce(c.deps), 0)
})
