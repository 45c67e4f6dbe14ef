import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { enqueue } from '../../jobs/queue.ts'
import { aCoordinatorOfItsOwn, type TestCoordinator } from '../_kit/coordinator.ts'
import { untilPolled } from '../_kit/until.ts'

let c: TestCoordinator

before(async () => {
  c = await aCoordinatorOfItsOwn()
})
after(() => c.stop())

/** From now on whoever adds this job waits for a lock when he has seen that nobody is at the one of before. */
const slowDown = () =>
  c.db.unsafe(`
    create function wait_before_adding() returns trigger language plpgsql as $$
    begin
      if new.key = 'raced' then perform pg_advisory_xact_lock(7, 7); end if;
      return new;
    end $$;
    create trigger waits_before_adding before insert on graphile_worker._private_jobs
      for each row execute function wait_before_adding()`)

const isWaiting = async () => {
  const rows = await c.db`
    select from pg_locks where locktype = 'advisory' and classid = 7 and objid = 7 and not granted`
  return rows.length > 0
}

test('a job is added also when a worker begins the one of before in that moment', async () => {
  const add = () =>
    c.db.begin((tx) =>
      enqueue(tx, 'runs:eraseDeleted', [{ payload: { orgId: 'org_x' }, inMs: 3_600_000, key: 'raced' }]),
    )
  await add()
  await slowDown()
  let adding: Promise<unknown> | undefined
  await c.db.begin(async (tx) => {
    await tx`select pg_advisory_xact_lock(7, 7)`
    adding = add()
    await untilPolled('it to be added', isWaiting)
    await tx`
      update graphile_worker._private_jobs
      set locked_at = now(), locked_by = 'a worker', attempts = 1
      where key = 'raced'`
  })
  await adding
  const jobs = await c.db<{ key: string | null; by: string | null }[]>`
    select key, locked_by as by from graphile_worker.jobs where task_identifier = 'runs:eraseDeleted' order by id`
  assert.deepEqual(
    jobs.map(({ key, by }) => [key, by]),
    [
      [null, 'a worker'],
      ['raced', null],
    ],
  )
})
