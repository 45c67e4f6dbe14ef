// What a worker has locked is free soon after its process is gone, and only then.
import assert from 'node:assert/strict'
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, afterEach, before, test } from 'node:test'
import { enqueue } from '../../jobs/queue.ts'
import { aCoordinatorOfItsOwn, aRun, runOf, type TestCoordinator } from '../_kit/coordinator.ts'
import { moment } from '@windlass/shared/test/_kit/until.ts'
import { untilPolled } from '../_kit/until.ts'
import { aWorkflow } from '../_kit/workflow.ts'

let c: TestCoordinator
let folder: string
let child: ChildProcess

before(async () => {
  c = await aCoordinatorOfItsOwn()
  folder = await mkdtemp(join(tmpdir(), 'windlass-worker-locks-'))
  await aWorkflow(c, { slug: 'any' })
})
afterEach(async () => {
  if (child.exitCode !== null || child.signalCode !== null) return
  child.kill('SIGKILL')
  await once(child, 'exit')
})
after(async () => {
  await c.stop()
  await rm(folder, { recursive: true, force: true })
})

/** A second coordinator, in a process of its own. Answers its worker. */
async function another(): Promise<string> {
  const known = await workers()
  child = fork(join(import.meta.dirname, 'programs/coordinator.ts'), {
    env: {
      ...process.env,
      WINDLASS_DATABASE_URL: c.deps.config.databaseUrl,
      WINDLASS_HOME: folder,
      WINDLASS_PORT: '0',
      WINDLASS_LOG_LEVEL: 'error',
    },
  })
  await once(child, 'message')
  return untilPolled('its lock', async () => (await workers()).find((id) => !known.includes(id)))
}

const workers = async () => (await c.db<{ id: string }[]>`select id from job_workers`).map(({ id }) => id)

interface Locked {
  key: string
  worker: string | null
}

const locked = () => c.db<Locked[]>`
  select key, locked_by as worker from graphile_worker.jobs where key like 'held:%' order by key`

/**
 * Four jobs in queues of their own, two for each coordinator, begun and held up, and one more behind each; then the
 * act. Answers the runs that the jobs of the second one were to cancel, and those behind them.
 */
async function whileJobsAreUnderWay(act: (worker: string) => Promise<unknown>, worker: string): Promise<string[]> {
  const pairs = await Promise.all(
    Array.from({ length: 4 }, async () => [await aRun(c, { workflow: 'any' }), await aRun(c, { workflow: 'any' })]),
  )
  const held = pairs.map(([run]) => run!.id)
  let theirs: number[] = []
  await c.db.begin(async (tx) => {
    await tx`select from runs where id = any(${held}) for update`
    const jobOf = (id: string, queue: number) => ({
      payload: { runIds: [id], reason: 'test' },
      inMs: 0,
      key: `held:${queue}:${id}`,
      queue: `held:${queue}`,
    })
    const jobs = pairs.flatMap((pair, queue) => pair.map((run) => jobOf(run.id, queue)))
    await c.db.begin((other) => enqueue(other, 'runs:cancel', jobs))
    const begun = await untilPolled('four jobs to be begun', async () => {
      const rows = (await locked()).filter((job) => job.worker !== null)
      return rows.length === 4 && rows
    })
    theirs = begun.filter((job) => job.worker === worker).map((job) => Number(job.key.split(':')[1]))
    await act(worker)
  })
  assert.equal(theirs.length, 2, 'two of them are executed by the second coordinator')
  return theirs.flatMap((queue) => pairs[queue]!.map(({ id }) => id))
}

const areCancelled = async (ids: string[]) => {
  const runs = await Promise.all(ids.map((id) => runOf(c, id)))
  return runs.every(({ status }) => status === 'cancelled')
}

test('jobs and queues of a coordinator that was killed go on soon', async () => {
  const worker = await another()
  const ids = await whileJobsAreUnderWay(async () => {
    child.kill('SIGKILL')
    await once(child, 'exit')
  }, worker)
  await untilPolled('its jobs to be done', () => areCancelled(ids))
  assert.equal((await workers()).includes(worker), false)
})

/** As if the worker had begun a job a moment ago. */
async function begun(worker: string): Promise<() => Promise<boolean>> {
  const key = `begun:${worker}`
  await c.db.begin((tx) => enqueue(tx, 'runs:admit', [{ payload: { orgId: key }, inMs: 3_600_000, key }]))
  await c.db`
    with job as (
      update graphile_worker._private_jobs
      set locked_by = ${worker}, locked_at = now()
      where key = ${key}
      returning job_queue_id
    )
    update graphile_worker._private_job_queues q
    set locked_by = ${worker}, locked_at = now()
    from job
    where q.id = job.job_queue_id`
  return async () => {
    const [row] = await c.db<[{ n: number }]>`
      select count(*)::int as n
      from graphile_worker.jobs j
      join graphile_worker._private_job_queues q using (locked_by)
      where j.key = ${key} and q.queue_name = ${key} and j.locked_by = ${worker}`
    return row.n === 1
  }
}

async function looks(count: number): Promise<void> {
  for (let i = 0; i < count; i++) await moment('workers.looked')
}

const KEY = (worker: string) => c.db`hashtextextended(${`windlass job worker ${worker}`}, 0)`

/** The server of the session that holds the worker's lock. */
const holder = async (worker: string): Promise<number | undefined> => {
  const [row] = await c.db<{ pid: number }[]>`
    select pid
    from pg_locks
    where locktype = 'advisory' and granted and objsubid = 1
      and (classid::bigint << 32) | objid::bigint = ${KEY(worker)}`
  return row?.pid
}

test('a worker that stands still for a moment keeps what it has begun', async () => {
  const worker = await another()
  const isLocked = await begun(worker)
  child.kill('SIGSTOP')
  await looks(2)
  child.kill('SIGCONT')
  await looks(4)
  assert.equal(await isLocked(), true)
  assert.equal((await workers()).includes(worker), true)
})

/** From now on a turn of bulk jobs waits in its first statement while somebody holds this lock. */
const slowTurns = () =>
  c.db.unsafe(`
    create function wait_for_turn() returns trigger language plpgsql as $$
    begin
      perform pg_advisory_xact_lock_shared(7, 8);
      return null;
    end $$;
    create trigger waits_for_turn before update on bulk_jobs for each statement execute function wait_for_turn()`)

async function whileTurnsWait(act: () => Promise<unknown>): Promise<void> {
  await c.db.begin(async (tx) => {
    await tx`set local idle_in_transaction_session_timeout = 0`
    await tx`select pg_advisory_xact_lock(7, 8)`
    await act()
  })
}

interface Turn {
  orgId: string
  worker: string | null
}

const turns = () => c.db<Turn[]>`
  select payload ->> 'orgId' as org_id, locked_by as worker
  from graphile_worker._private_jobs
  where payload ->> 'orgId' like 'stands-still-%'`

test('jobs of a worker that stands still go on, and it takes none of them away when it goes on itself', async () => {
  const orgs = Array.from({ length: 4 }, (_, n) => `stands-still-${n}`)
  const add = () =>
    c.db.begin((tx) =>
      enqueue(
        tx,
        'bulkJobs:turn',
        orgs.map((orgId) => ({ payload: { orgId }, inMs: 0, key: orgId })),
      ),
    )
  const worker = await another()
  const theirs = async () => (await turns()).filter((turn) => turn.worker === worker).map(({ orgId }) => orgId)
  let first: string[] = []
  await slowTurns()
  await whileTurnsWait(async () => {
    await add()
    await untilPolled('four turns to be begun', async () => (await turns()).every((turn) => turn.worker !== null))
    first = await theirs()
    child.kill('SIGSTOP')
  })
  assert.equal(first.length, 2)
  await untilPolled('the turns of the other worker to end', async () => (await turns()).length === 2)
  await whileTurnsWait(async () => {
    await untilPolled('the jobs of the one that stands still to be begun again', async () => {
      const now = await turns()
      return now.every((turn) => turn.worker !== null && turn.worker !== worker)
    })
    child.kill('SIGCONT')
    await untilPolled('it to have its lock again', async () => (await holder(worker)) !== undefined)
    await looks(1)
    assert.deepEqual((await turns()).map(({ orgId }) => orgId).sort(), first.sort())
  })
  await untilPolled('them to be done', async () => (await turns()).length === 0)
  await add()
  await untilPolled('no queue to be locked', async () => (await turns()).length === 0)
})

test('a worker whose lock was cut has it back, and keeps what it has begun', async () => {
  const worker = await another()
  const isLocked = await begun(worker)
  const before = (await holder(worker))!
  await c.db`select pg_terminate_backend(${before})`
  await untilPolled('another session to hold the lock', async () => ![undefined, before].includes(await holder(worker)))
  await looks(4)
  assert.equal(await isLocked(), true)
  assert.equal((await workers()).includes(worker), true)
})

test('a worker that cannot have its lock again gives way to a new one, and its jobs go on', async () => {
  const worker = await another()
  const isLocked = await begun(worker)
  const known = await workers()
  await c.db.begin(async (tx) => {
    const before = (await holder(worker))!
    const taken = tx`select pg_advisory_xact_lock(${KEY(worker)})`
    await Promise.all([taken, c.db`select pg_terminate_backend(${before})`])
    await untilPolled('a new worker', async () => (await workers()).some((id) => !known.includes(id)))
  })
  await untilPolled('the jobs of the one before to be free', async () => !(await isLocked()))
  await untilPolled('it to be forgotten', async () => !(await workers()).includes(worker))
})
