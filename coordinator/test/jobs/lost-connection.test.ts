// A connection that is lost between a job and the note that it was done: the process goes on, and so does the job.
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

const left = async () => {
  const rows = await c.db<{ key: string }[]>`select key from graphile_worker.jobs where key = 'cut'`
  return rows.length
}

/** From now on the connection that notes the first end of a job is cut. */
async function cutFirst(): Promise<void> {
  await c.db.unsafe(`
    create sequence ends;
    create function cut() returns trigger language plpgsql as $$
    begin
      if nextval('ends') = 1 then perform pg_terminate_backend(pg_backend_pid()); end if;
      return coalesce(new, old);
    end $$;
    create trigger cut before delete on graphile_worker._private_jobs for each row execute function cut()`)
}
const cuts = async () => (await c.db<[{ n: number }]>`select last_value::int as n from ends`)[0].n

test('the end of a job whose connection is lost is noted by the next worker', async () => {
  await cutFirst()
  const job = { payload: { orgId: 'org_x', runs: [{ runId: 'run_x', epoch: 1 }] }, inMs: 0, key: 'cut' }
  await c.db.begin((tx) => enqueue(tx, 'runs:cancelDeadline', [job]))
  await untilPolled('the job to be done', async () => (await left()) === 0)
  assert.equal(await cuts(), 2)
})
