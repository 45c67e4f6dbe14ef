// The clock of the database is ahead for a while, as after a failover to a host with a wrong clock, then right again.
// Throttles and schedules have tests of their own.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { Job } from '@windlass/shared/model/job.ts'
import type { Run } from '@windlass/shared/model/run.ts'
import { ops } from '@windlass/shared/ops/index.ts'
import { putBulkJobsBack } from '../bulk/set-back.ts'
import { takeTurn } from '../bulk/store-turns.ts'
import { putDebouncesBack } from '../engine/commit/debounce-set-back.ts'
import { enqueue } from '../jobs/queue.ts'
import { putJobsBack } from '../jobs/set-back.ts'
import { cordonBySystem, noteFailure } from '../runners/intake.ts'
import { putRunnersBack } from '../runners/set-back.ts'
import { anAgent, type TestAgent } from './_kit/agent.ts'
import { aRun, type TestCoordinator } from './_kit/coordinator.ts'
import { moveClock } from './_kit/database-clock.ts'
import { aMovableCoordinator } from './_kit/schedules.ts'
import { until } from './_kit/until.ts'
import { aWorkflow } from './_kit/workflow.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE

let c: TestCoordinator

before(async () => {
  // Nobody sweeps but where a test does.
  c = await aMovableCoordinator({ SWEEP_MS: HOUR })
})
after(() => c.stop())

async function aheadFor<T>(ms: number, act: () => Promise<T>): Promise<T> {
  await moveClock(c.db, ms)
  const done = await act()
  await moveClock(c.db, -ms)
  return done
}

/** Nobody does the jobs of the org. */
const holdQueue = (on: TestCoordinator) => on.db`
  insert into graphile_worker._private_job_queues (queue_name, locked_at, locked_by)
  values (${on.orgId}, now(), 'a test')
  on conflict (queue_name) do update set locked_at = now(), locked_by = 'a test'`

const freeQueue = (on: TestCoordinator) => on.db`select graphile_worker.force_unlock_workers(array['a test'])`

const statusOf = async (on: TestCoordinator, { id }: Job) => (await on.call(ops.jobs.get, { job: id })).job.status

/** A cancel of many runs, of which somebody who is gone has had a turn. */
async function aBulkCancel(on: TestCoordinator): Promise<Job> {
  const { slug } = await aWorkflow(on)
  for (let i = 0; i < 3; i++) await aRun(on, { workflow: slug })
  const { job } = await on.call(ops.runs.bulkCancel, { org: on.org, filter: { workflow: slug } })
  assert.equal(await takeTurn(on.deps.db, on.orgId), job.id)
  await on.db`select graphile_worker.remove_job(${`bulk-turn:${on.orgId}`})`
  return job
}

test('a bulk job that had a turn by a clock that was ahead has the next one at once, and its deadline', async () => {
  await holdQueue(c)
  const job = await aheadFor(48 * HOUR, () => aBulkCancel(c))
  assert.equal(await takeTurn(c.deps.db, c.orgId), undefined)
  assert.equal(await putBulkJobsBack(c.deps), 1)
  const [row] = await c.db<[{ hours: number }]>`
    select (extract(epoch from deadline_at - shifted.now()) / 3600)::float8 as hours
    from bulk_jobs where id = ${job.id}`
  assert.ok(row.hours > 23 && row.hours <= 24, `${row.hours}`)
  await freeQueue(c)
  await until('its end', async () => (await statusOf(c, job)) === 'completed')
  assert.equal(await putBulkJobsBack(c.deps), 0)
})

/** In how many seconds these jobs are due. */
async function dueOf(keys: readonly string[]): Promise<number[]> {
  const rows = await c.db<{ key: string; seconds: number }[]>`
    select key, extract(epoch from run_at - shifted.now())::float8 as seconds
    from graphile_worker.jobs where key = any(${[...keys]})`
  return keys.map((one) => 10 * Math.round(rows.find(({ key }) => key === one)!.seconds / 10) || 0)
}

test('queued jobs are due after their delay, whoever has locked them, and keep it', async () => {
  const keys = ['at-once', 'later', 'failed']
  const add = () =>
    c.deps.db.begin(async (tx) => {
      const job = (key: string, inMs: number) => ({ payload: { orgId: c.orgId, runs: [] }, inMs, key })
      await enqueue(tx, 'runs:cancelDeadline', [job('at-once', 0), job('later', 5 * MINUTE), job('failed', 0)])
    })
  await holdQueue(c)
  await aheadFor(2 * HOUR, async () => {
    await add()
    // As graphile-worker has it after eight tries.
    await c.deps.db`
      update graphile_worker._private_jobs
      set attempts = 8, run_at = greatest(now(), run_at) + exp(8) * interval '1 second'
      where key = 'failed'`
  })
  assert.deepEqual(await dueOf(keys), [7200, 7500, 10180])
  const put = await c.db.begin(async (tx) => {
    await tx`select from graphile_worker._private_jobs where key = 'later' for update`
    const put = putJobsBack(c.deps)
    await until('the others are put back', async () => (await dueOf(keys))[2] === 2980)
    assert.deepEqual(await dueOf(keys), [0, 7500, 2980])
    return { put }
  })
  assert.equal(await put.put, 3)
  assert.deepEqual(await dueOf(keys), [0, 300, 2980])
  assert.equal(await putJobsBack(c.deps), 0)
  await freeQueue(c)
})

const runnerOf = async ({ id }: TestAgent) => (await c.call(ops.runners.get, { runner: id })).runner

test('a runner is kept from work for as long as ever; failures of before do not count for longer', async () => {
  const agents = await Promise.all(['quarantined', 'cordoned', 'failing'].map((name) => anAgent(c, { name })))
  const [quarantined, cordoned, failing] = agents as [TestAgent, TestAgent, TestAgent]
  await aheadFor(2 * HOUR, async () => {
    for (let i = 0; i < 3; i++) await noteFailure(c.deps, quarantined.id)
    await cordonBySystem(c.deps, [cordoned.id], 'a test')
    await noteFailure(c.deps, failing.id)
  })
  const minutesOf = async (runner: TestAgent) => {
    const [row] = await c.db<[{ since: number; until: number | null; failure: number | null }]>`
      select round(extract(epoch from since - shifted.now()) / 60)::int as since,
             round(extract(epoch from quarantined_until - shifted.now()) / 60)::int as until,
             round(extract(epoch from failures[1] - shifted.now()) / 60)::int as failure
      from runner_intake where runner_id = ${runner.id}`
    return [row.since, row.until, row.failure]
  }
  assert.equal((await minutesOf(quarantined))[1], 130)
  assert.equal(await putRunnersBack(c.deps), 3)
  assert.equal((await minutesOf(quarantined))[1], 10)
  assert.notEqual((await runnerOf(quarantined)).quarantine, null)
  assert.equal((await minutesOf(cordoned))[0], 0)
  assert.equal((await minutesOf(failing))[2], 0)
  assert.equal(await putRunnersBack(c.deps), 0)
  for (const agent of agents) agent.close()
})

test('a runner that registered, failed once or was resumed by a clock that was ahead is in no quarantine', async () => {
  const other = await anAgent(c, { name: 'of-before' })
  const [registered, failing, resumed] = await aheadFor(2 * HOUR, async () => {
    const agents = [] as TestAgent[]
    for (const name of ['registered', 'failing-once', 'resumed']) agents.push(await anAgent(c, { name }))
    // Its default was made before the clock was movable.
    await c.deps.db`update runner_intake set since = now() where runner_id = ${agents[0]!.id}`
    await noteFailure(c.deps, agents[1]!.id)
    await cordonBySystem(c.deps, [agents[2]!.id], 'a test')
    await c.call(ops.runners.resume, { runner: agents[2]!.id })
    return agents as [TestAgent, TestAgent, TestAgent]
  })
  assert.equal(await putRunnersBack(c.deps), 3)
  for (const agent of [registered, failing, resumed, other]) {
    const { name, quarantine, intake } = await runnerOf(agent)
    assert.deepEqual({ quarantine, state: intake.state }, { quarantine: null, state: 'open' }, name)
    agent.close()
  }
  const [{ left }] = await c.db<[{ left: number }]>`
    select count(*)::int as left from runner_intake where quarantined_at is null <> (quarantined_until is null)`
  assert.equal(left, 0)
  assert.equal(await putRunnersBack(c.deps), 0)
})

test('a runner was heard, and left, no later than now', async () => {
  const agents = await Promise.all(['heard', 'left'].map((name) => anAgent(c, { name })))
  const [heard, left] = agents as [TestAgent, TestAgent]
  await aheadFor(2 * HOUR, async () => {
    await c.deps.db`
      update runners
      set last_heartbeat_at = now(), last_poll_at = now(), disconnected_at = case when id = ${left.id} then now() end
      where id in (${heard.id}, ${left.id})`
  })
  assert.equal(await putRunnersBack(c.deps), 2)
  const rows = await c.db`
    select id, round(extract(epoch from last_heartbeat_at - shifted.now()) / 60)::int as heartbeat,
           round(extract(epoch from last_poll_at - shifted.now()) / 60)::int as poll,
           round(extract(epoch from disconnected_at - shifted.now()) / 60)::int as left,
           copy_refused_at as refused
    from runners where id in (${heard.id}, ${left.id})`
  for (const { id, ...times } of rows)
    assert.deepEqual(times, { heartbeat: 0, poll: 0, left: id === left.id ? 0 : null, refused: null })
  assert.equal(await putRunnersBack(c.deps), 0)
  for (const agent of agents) agent.close()
})

/** In how many minutes the run enters the queue, at the latest, and has waited there for too long. */
async function waitOf({ id }: Pick<Run, 'id'>): Promise<number[]> {
  const [row] = await c.db<[{ enters: number; latest: number; ends: number; isTold: boolean }]>`
    select round(extract(epoch from e.due_at - shifted.now()) / 60)::int as enters,
           round(extract(epoch from d.latest_at - shifted.now()) / 60)::int as latest,
           round(extract(epoch from q.due_at - shifted.now()) / 60)::int as ends,
           r.queued_at = e.due_at as is_told
    from runs r
    join timers e on e.run_id = r.id and e.kind = 'enqueue'
    join timers q on q.run_id = r.id and q.kind = 'queue-timeout'
    join debounces d on d.run_id = r.id
    where r.id = ${id}`
  assert.ok(row.isTold)
  return [row.enters, row.latest, row.ends]
}

test('a debounced run waits no longer than its descriptor says, for the next call and altogether', async () => {
  const descriptor = { debounce: { wait: '10m', maxWait: '30m' }, timeout: { queue: '2h' } }
  const { slug } = await aWorkflow(c, { descriptor })
  const other = await aWorkflow(c, { descriptor })
  const call = (workflow: string) => aRun(c, { workflow })
  const right = await call(other.slug)
  const run = await aheadFor(2 * HOUR, () => call(slug))
  assert.deepEqual(await waitOf(run), [130, 150, 250])
  assert.equal(await putDebouncesBack(c.deps), 1)
  assert.deepEqual(await waitOf(run), [10, 30, 130])
  assert.deepEqual(await waitOf(right), [10, 30, 130])
  // One that a later call has put right but for the latest time.
  await c.db`update debounces set latest_at = latest_at + interval '2 hours' where run_id = ${run.id}`
  assert.equal(await putDebouncesBack(c.deps), 1)
  assert.deepEqual(await waitOf(run), [10, 30, 130])
  assert.equal((await call(slug)).id, run.id)
  assert.equal(await putDebouncesBack(c.deps), 0)
})

test('a coordinator whose pulse finds that the clock was set back puts all of these right', async () => {
  const sweeping = await aMovableCoordinator({ SWEEP_MS: 50 })
  try {
    const { db } = sweeping
    const pulseAt = async () =>
      (await db<[{ at: number }]>`select extract(epoch from at)::float8 as at from pulse`)[0].at
    const before = await pulseAt()
    const debounced = await aWorkflow(sweeping, { descriptor: { debounce: { wait: '10m' } } })
    const agent = await anAgent(sweeping)
    await moveClock(db, 2 * HOUR)
    await aRun(sweeping, { workflow: debounced.slug })
    for (let i = 0; i < 3; i++) await noteFailure(sweeping.deps, agent.id)
    await holdQueue(sweeping)
    const job = await aBulkCancel(sweeping)
    await sweeping.deps.db.begin((tx) =>
      enqueue(tx, 'runs:cancelDeadline', [{ payload: { orgId: 'other', runs: [] }, inMs: MINUTE, key: 'later' }]),
    )
    await until('a pulse has seen it', async () => (await pulseAt()) > before + 7000)
    await moveClock(db, -2 * HOUR)
    await freeQueue(sweeping)
    await until('the end of the bulk job', async () => (await statusOf(sweeping, job)) === 'completed')
    await until('all are put right', async () => {
      const [row] = await db<[{ isLeft: boolean }]>`
        select exists (select from timers where kind = 'enqueue' and due_at > shifted.now() + interval '1 hour')
            or exists (
              select from graphile_worker.jobs where key = 'later' and run_at > shifted.now() + interval '1 hour'
            )
            or exists (
              select from runner_intake where quarantined_until > shifted.now() + interval '1 hour'
            ) as is_left`
      return !row.isLeft
    })
    agent.close()
  } finally {
    await sweeping.stop()
  }
})

test('a coordinator that starts puts right what others have seen and left', async () => {
  const { slug } = await aWorkflow(c, { descriptor: { debounce: { wait: '10m', maxWait: '30m' } } })
  const run = await aheadFor(2 * HOUR, () => aRun(c, { workflow: slug }))
  // As the pulse does of one that is killed then.
  await c.db`update pulse set at = shifted.now(), gaps = gaps + 1`
  const next = await c.another()
  await until('it is put right', async () => {
    const [row] = await c.db<[{ minutes: number }]>`
      select extract(epoch from due_at - shifted.now())::float8 / 60 as minutes
      from timers where run_id = ${run.id} and kind = 'enqueue'`
    return row.minutes <= 10
  })
  await next.stop()
})
