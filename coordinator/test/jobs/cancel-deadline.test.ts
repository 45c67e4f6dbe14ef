import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { ops } from '@windlass/shared/ops/index.ts'
import { cancelDeadline } from '../../jobs/cancel-deadline.ts'
import { cancelThese } from '../../engine/commit/cancel.ts'
import { enqueue, type Jobs } from '../../jobs/queue.ts'
import { aRunningAgent, end, type Held, returned, takeNext, type TestAgent } from '../_kit/agent.ts'
import { aCoordinator, aRun, runOf, type TestCoordinator } from '../_kit/coordinator.ts'
import { until, untilPolled } from '../_kit/until.ts'
import { aWorkflow } from '../_kit/workflow.ts'

let c: TestCoordinator
const agents: TestAgent[] = []

before(async () => {
  c = await aCoordinator()
  await aWorkflow(c, { slug: 'any' })
})
after(async () => {
  for (const agent of agents) agent.close()
  await c.stop()
})

async function running(): Promise<Held> {
  await aRun(c, { workflow: 'any' })
  const held = await aRunningAgent(c)
  agents.push(held.agent)
  return held
}

const jobs = (key: string) => c.db<{ runAt: Date }[]>`select run_at from graphile_worker.jobs where key = ${key}`
const far = (key: string, epoch: number, inMs = 3_600_000) => ({
  payload: { orgId: 'org_x', runs: [{ runId: 'run_x', epoch }] },
  inMs,
  key,
})

test('a job exists exactly if its transaction is committed', async () => {
  await assert.rejects(
    c.db.begin(async (tx) => {
      await enqueue(tx, 'runs:cancelDeadline', [far('rolled-back', 1)])
      throw new Error('rolled back')
    }),
    /rolled back/,
  )
  assert.equal((await jobs('rolled-back')).length, 0)
})

test('the same key replaces an earlier job', async () => {
  for (const inMs of [3_600_000, 7_200_000]) {
    await c.db.begin((tx) => enqueue(tx, 'runs:cancelDeadline', [far('again', 1, inMs)]))
  }
  const rows = await jobs('again')
  assert.equal(rows.length, 1)
  assert.ok(rows[0]!.runAt.getTime() > Date.now() + 5_400_000)
})

test('a deadline goes before what is erased', async () => {
  await c.db.begin(async (tx) => {
    await enqueue(tx, 'runs:eraseDeleted', [{ payload: { orgId: 'org_x' }, inMs: 3_600_000, key: 'first' }])
    await enqueue(tx, 'runs:cancelDeadline', [far('second', 1)])
  })
  const rows = await c.db<{ key: string }[]>`
    select key from graphile_worker.jobs where key in ('first', 'second') order by priority, run_at`
  assert.deepEqual(
    rows.map(({ key }) => key),
    ['second', 'first'],
  )
})

test('a deadline that comes due ends its run though the agent holds it, and the job is gone', async () => {
  const { offer } = await running()
  await c.call(ops.runs.cancel, { run: offer.run })
  const payload = { orgId: c.orgId, runs: [{ runId: offer.run, epoch: offer.epoch }] }
  const job = { payload, inMs: 0, key: `cancel:${offer.run}` }
  await c.db.begin((tx) => enqueue(tx, 'runs:cancelDeadline', [job]))
  await until('the end of the run', async () => (await runOf(c, offer.run)).status === 'cancelled')
  await untilPolled('the end of the job', async () => (await jobs(job.key)).length === 0)
})

test('the deadline of an earlier placement does nothing to a later one', async () => {
  const { agent, link, offer } = await running()
  await link.report(offer, 2, end({ how: 'killed', signal: 'SIGKILL' }))
  const again = await takeNext(agent, link)
  await cancelDeadline(c.deps, { runId: offer.run, epoch: offer.epoch })
  assert.equal((await runOf(c, offer.run)).status, 'running')
  await link.report(again, 2, end(returned(1)))
})

test('the deadline of a run that has ended, or never was, does nothing', async () => {
  const { link, offer } = await running()
  await link.report(offer, 2, end(returned(1)))
  const before = await runOf(c, offer.run)
  await cancelDeadline(c.deps, { runId: offer.run, epoch: offer.epoch })
  await cancelDeadline(c.deps, { runId: 'run_nowhere', epoch: 1 })
  assert.deepEqual(await runOf(c, offer.run), before)
})

test('runs that are cancelled together have one deadline, which ends all of them', async () => {
  const held = [await running(), await running()]
  const ids = held.map(({ offer }) => offer.run)
  await cancelThese(c.deps, ids, { by: 'coordinator', reason: 'no use' })
  const [job, ...others] = await c.db<{ key: string; payload: Jobs['runs:cancelDeadline']; queue: string }[]>`
    select j.key, j.queue_name as queue, p.payload
    from graphile_worker.jobs j
    join graphile_worker._private_jobs p on p.id = j.id
    where j.task_identifier = 'runs:cancelDeadline' and p.payload::text like ${`%${ids[0]}%`}`
  assert.deepEqual([job?.queue, others], [job?.payload.orgId, []])
  await cancelDeadline(c.deps, job!.payload)
  for (const id of ids) assert.equal((await runOf(c, id)).status, 'cancelled')
})

test('the deadline waits for a silent agent whose lease is longer, and not for one that is heard of', async () => {
  const { offer } = await running()
  await c.call(ops.runs.cancel, { run: offer.run })
  const [job] = await c.db<{ payload: Jobs['runs:cancelDeadline'] }[]>`
    select p.payload from graphile_worker._private_jobs p where p.key = ${`cancel:${offer.run}`}`
  const heard = (agoMs: number) => c.db`
    update placements
    set
      offered_at = now() - ${agoMs} * interval '1 millisecond',
      accepted_at = now() - ${agoMs} * interval '1 millisecond',
      renewed_at = now() - ${agoMs} * interval '1 millisecond',
      lease_expires_at = now() + interval '1 hour'
    where run_id = ${offer.run}`
  await heard(c.deps.config.leaseMs + 1000)
  await c.db`select graphile_worker.remove_job(${`cancel:${offer.run}`})`
  await cancelDeadline(c.deps, job!.payload)
  assert.equal((await runOf(c, offer.run)).status, 'cancelling')
  const [next] = await jobs(`cancel:${offer.run}`)
  assert.ok(next!.runAt.getTime() > Date.now(), 'it is looked at again')
  await heard(0)
  await cancelDeadline(c.deps, job!.payload)
  assert.equal((await runOf(c, offer.run)).status, 'cancelled')
})

test('jobs of one queue follow one another, without a rest between them', async () => {
  // At one a second, as workers look for them by themselves, it would take minutes.
  const keys = Array.from({ length: 200 }, (_, i) => `queued:${i}`)
  await c.db.begin((tx) =>
    enqueue(
      tx,
      'runs:cancelDeadline',
      keys.map((key) => ({ ...far(key, 1, 0), queue: 'queued' })),
    ),
  )
  const left = () => c.db`select from graphile_worker.jobs where key in ${c.db(keys)}`
  await untilPolled('the last of them', async () => (await left()).length === 0)
})
