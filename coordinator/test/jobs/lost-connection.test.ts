// A connection that is lost between a job and the note that it was done: the process goes on, and so does the job.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { createLog } from '@windlass/shared/log.ts'
import { enqueue } from '../../jobs/queue.ts'
import { aCoordinatorOfItsOwn, aRun, type TestCoordinator } from '../_kit/coordinator.ts'
import { untilPolled } from '../_kit/until.ts'
import { aWorkflow } from '../_kit/workflow.ts'

let c: TestCoordinator

const logged: Record<string, unknown>[] = []

before(async () => {
  const write = (line: string) => logged.push(JSON.parse(line) as Record<string, unknown>)
  c = await aCoordinatorOfItsOwn({}, { log: createLog({}, 'warn', { write }) })
})
after(() => c.stop())

const left = async () => {
  const rows = await c.db<{ key: string }[]>`select key from graphile_worker.jobs where key = 'cut'`
  return rows.length
}

/** From now on the connections that note the first ends of a job, or free it, are cut. */
async function cutFirst(most = 1): Promise<void> {
  await c.db.unsafe(`
    drop sequence if exists ends;
    create sequence ends;
    create or replace function cut() returns trigger language plpgsql as $$
    begin
      if nextval('ends') <= ${most} then perform pg_terminate_backend(pg_backend_pid()); end if;
      return coalesce(new, old);
    end $$;
    create or replace trigger cut before delete on graphile_worker._private_jobs for each row
      when (old.key = 'cut') execute function cut();
    create or replace trigger cut_free before update on graphile_worker._private_jobs for each row
      when (old.key = 'cut' and new.locked_by is null) execute function cut()`)
}
const cuts = async () => (await c.db<[{ n: number }]>`select last_value::int as n from ends`)[0].n

/** To be done now; `key` names it, and each org has a queue of its own. */
async function aDeadline(orgId: string, runId: string, key: string): Promise<void> {
  const job = { payload: { orgId, runs: [{ runId, epoch: 1 }] }, inMs: 0, key }
  await c.db.begin((tx) => enqueue(tx, 'runs:cancelDeadline', [job]))
}

test('the end of a job whose connection is lost is noted by the next worker', async () => {
  await cutFirst()
  await aDeadline('org_x', 'run_x', 'cut')
  await untilPolled('the job to be done', async () => (await left()) === 0)
  assert.equal(await cuts(), 3)
})

test('so it is when the connection that frees it is lost as well', async () => {
  await cutFirst(2)
  await aDeadline('org_x', 'run_x', 'cut')
  await untilPolled('the job to be done', async () => (await left()) === 0)
  assert.equal(await cuts(), 4)
})

test('so it is when another job was under way, which ends later', async () => {
  const { slug } = await aWorkflow(c)
  const { id } = await aRun(c, { workflow: slug })
  const isUnderWay = async () => {
    const [job] = await c.db<{ locked: boolean }[]>`
      select locked_at is not null as locked from graphile_worker.jobs where key = 'held'`
    return job?.locked === true
  }
  await c.db.begin(async (tx) => {
    await tx`select from runs where id = ${id} for update`
    await aDeadline(c.orgId, id, 'held')
    await untilPolled('the other to be under way', isUnderWay)
    await cutFirst()
    await aDeadline('org_x', 'run_x', 'cut')
    await untilPolled('the connection to be cut', async () => (await cuts()) >= 1)
  })
  await untilPolled('the job to be done', async () => (await left()) === 0)
})

test('a connection that is lost is nothing that a person has to look at', async () => {
  const isLogged = () => logged.some(({ name }) => name === 'jobs.unavailable')
  await c.db`
    select pg_terminate_backend(pid)
    from pg_stat_activity
    where datname = current_database() and pid <> pg_backend_pid() and query ilike '%listen "jobs:insert"%'`
  await untilPolled('the loss', () => Promise.resolve(isLogged()))
  assert.deepEqual(
    logged.filter(({ name }) => name === 'jobs.error').map(({ message }) => message),
    [],
  )
})
