import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { newId } from '@windlass/shared/ids.ts'
import { ops } from '@windlass/shared/ops/index.ts'
import { aRunningAgent, anAgent, end, placementOf, returned, start, type TestAgent, type Held } from '../_kit/agent.ts'
import { anOrg, aCoordinator, aRun, logOf, refusal, runOf, type TestCoordinator, typesOf } from '../_kit/coordinator.ts'
import { assertInStep } from '../_kit/in-step.ts'
import { cancelDescendants } from '../../engine/commit/cancel.ts'
import { until } from '../_kit/until.ts'
import { aWorkflow, type TestWorkflow } from '../_kit/workflow.ts'

let c: TestCoordinator
let workflow: TestWorkflow
const agents: TestAgent[] = []

before(async () => {
  c = await aCoordinator()
  workflow = await aWorkflow(c, { descriptor: { cancelGrace: '1s' } })
})
after(async () => {
  for (const agent of agents) agent.close()
  await c.stop()
})

const cancel = async (run: string, reason = '') => (await c.call(ops.runs.cancel, { run, reason })).run

async function aRunningRun(): Promise<Held> {
  await aRun(c, { workflow: workflow.slug })
  const held = await aRunningAgent(c)
  agents.push(held.agent)
  return held
}

async function jobsFor(run: string): Promise<string[]> {
  const rows = await c.db<{ key: string }[]>`select key from graphile_worker.jobs where key = ${`cancel:${run}`}`
  return rows.map((row) => row.key)
}

test('a queued run ends at once and needs no agent', async () => {
  const { id } = await aRun(c, { workflow: workflow.slug })
  const run = await cancel(id, 'typo')
  assert.equal(run.status, 'cancelled')
  assert.ok(run.finishedAt)
  assert.equal(run.error, null)
  assert.deepEqual(await typesOf(c, id), ['run.queued', 'run.cancelling', 'run.cancelled'])
  assert.equal((await logOf(c, id))[1]?.data.reason, 'typo')
  assert.deepEqual(await jobsFor(id), [])
  assert.equal((await c.db`select 1 from run_queue where run_id = ${id}`).length, 0)
})

test('a running run is cancelled through its agent, and ends when the agent says that its processes are gone', async () => {
  const { link, offer } = await aRunningRun()
  assert.equal((await cancel(offer.run, 'enough')).status, 'cancelling')
  const order = await link.next('cancel')
  assert.deepEqual(order.runs, [
    { run: offer.run, epoch: offer.epoch, why: 'cancelled', reason: 'enough', graceMs: 1000 },
  ])
  assert.deepEqual(await jobsFor(offer.run), [`cancel:${offer.run}`])
  assert.deepEqual(await link.report(offer, 2, end({ how: 'cancelled', forced: true })), { kind: 'ack', seq: 2 })
  const run = await runOf(c, offer.run)
  assert.deepEqual([run.status, run.error, run.computeMs], ['cancelled', null, 5])
  const log = await logOf(c, offer.run)
  assert.deepEqual(
    log.slice(-2).map((event) => event.type),
    ['run.cancelling', 'run.cancelled'],
  )
  assert.deepEqual(log.at(-1)?.data, { forced: true })
})

test('a program that returns while it is being cancelled is cancelled all the same, and its output is dropped', async () => {
  const { link, offer } = await aRunningRun()
  await cancel(offer.run)
  await link.report(offer, 2, end(returned('too late')))
  assert.equal((await runOf(c, offer.run)).status, 'cancelled')
  assert.deepEqual(await c.call(ops.runs.output, { run: offer.run }), { output: null })
})

test('a process that is lost while its run is being cancelled ends the run, and nothing starts again', async () => {
  const { link, offer } = await aRunningRun()
  await cancel(offer.run)
  await link.report(offer, 2, end({ how: 'killed', signal: 'SIGKILL' }))
  assert.deepEqual([(await runOf(c, offer.run)).status, (await runOf(c, offer.run)).attempt], ['cancelled', 1])
})

test('a run that was offered but not accepted is cancelled through its agent as well', async () => {
  const { id } = await aRun(c, { workflow: workflow.slug })
  const agent = await anAgent(c)
  agents.push(agent)
  const link = await agent.connect()
  const [offer] = await agent.poll()
  assert.equal((await cancel(id)).status, 'cancelling')
  assert.equal((await link.next('cancel')).runs[0]?.run, id)
  assert.equal((await link.accept(offer!)).runs.length, 1)
  // Nothing was executed, so there is nothing but the end.
  await link.report(offer!, 1, end({ how: 'cancelled', forced: false }))
  assert.deepEqual(await typesOf(c, id), ['run.queued', 'run.pending', 'run.cancelling', 'run.cancelled'])
})

test('an agent that the order came too early for hears of it when it accepts', async () => {
  const { id } = await aRun(c, { workflow: workflow.slug })
  const other = await aRun(c, { workflow: workflow.slug })
  const agent = await anAgent(c)
  agents.push(agent)
  const link = await agent.connect()
  const offers = await agent.poll(2)
  await cancel(id, 'typo')
  await link.next('cancel')
  await link.accept(...offers)
  const orders = (await link.next('cancel')).runs
  assert.deepEqual(
    orders.map(({ run, reason }) => [run, reason]),
    [[id, 'typo']],
  )
  for (const offer of offers) await link.report(offer, 1, end({ how: 'cancelled', forced: false }))
  await cancel(other.id)
})

test('a program that begins while its run is being cancelled leaves the status as it is', async () => {
  const { id } = await aRun(c, { workflow: workflow.slug })
  const agent = await anAgent(c)
  agents.push(agent)
  const link = await agent.connect()
  const [offer] = await agent.poll()
  await link.accept(offer!)
  await cancel(id)
  await link.report(offer!, 1, start())
  const run = await runOf(c, id)
  assert.equal(run.status, 'cancelling')
  assert.ok(run.startedAt)
  await link.report(offer!, 2, end({ how: 'cancelled', forced: false }))
  assert.equal((await runOf(c, id)).status, 'cancelled')
})

test('cancelling again changes nothing, while cancelling and afterwards', async () => {
  const { link, offer } = await aRunningRun()
  await cancel(offer.run, 'first')
  assert.equal((await cancel(offer.run, 'second')).status, 'cancelling')
  await link.report(offer, 2, end({ how: 'cancelled', forced: false }))
  assert.equal((await cancel(offer.run)).status, 'cancelled')
  const types = await typesOf(c, offer.run)
  assert.equal(types.filter((type) => type === 'run.cancelling').length, 1)
  assert.deepEqual((await link.next('cancel')).runs[0]?.reason, 'first')
})

test('a finished run is refused with 409', async () => {
  const { link, offer } = await aRunningRun()
  await link.report(offer, 2, end(returned(1)))
  await assert.rejects(cancel(offer.run), refusal('RUN_ALREADY_FINISHED'))
})

test('twenty cancels at once leave one event, of a queued run and of a running one', async () => {
  const queued = await aRun(c, { workflow: workflow.slug })
  const answers = await Promise.all(Array.from({ length: 20 }, () => cancel(queued.id)))
  assert.ok(answers.every((run) => run.status === 'cancelled'))
  assert.deepEqual(await typesOf(c, queued.id), ['run.queued', 'run.cancelling', 'run.cancelled'])

  const { link, offer } = await aRunningRun()
  const more = await Promise.all(Array.from({ length: 20 }, () => cancel(offer.run)))
  assert.ok(more.every((run) => run.status === 'cancelling'))
  assert.equal((await typesOf(c, offer.run)).filter((type) => type === 'run.cancelling').length, 1)
  assert.equal((await jobsFor(offer.run)).length, 1)
  await link.report(offer, 2, end({ how: 'cancelled', forced: false }))
})

test('a claim and a cancel of the same runs at once leave every run in one place', async () => {
  const agent = await anAgent(c)
  agents.push(agent)
  const link = await agent.connect()
  const runs = await Promise.all(Array.from({ length: 20 }, () => aRun(c, { workflow: workflow.slug })))
  // Nobody is offered what is cancelled first: an empty answer is as good as any.
  const [offers] = await Promise.all([agent.poll(20, 3000), ...runs.map((run) => cancel(run.id))])
  await link.accept(...offers)
  await Promise.all(offers.map((offer) => link.report(offer, 1, end({ how: 'cancelled', forced: false }))))
  for (const { id } of runs) assert.equal((await runOf(c, id)).status, 'cancelled')
  const ids = runs.map((run) => run.id)
  const left = await c.db`
    select run_id from run_queue where run_id = any(${ids})
    union all
    select run_id from placements where run_id = any(${ids})`
  assert.equal(left.length, 0)
})

test("another org's run and an unknown one look absent, and nothing happens to the run", async () => {
  const { id } = await aRun(c, { workflow: workflow.slug })
  const { apiKey } = await anOrg(c)
  await assert.rejects(c.call(ops.runs.cancel, { run: id }, { apiKey }), refusal('NOT_FOUND'))
  await assert.rejects(cancel(newId('run')), refusal('NOT_FOUND'))
  assert.equal((await cancel(id)).status, 'cancelled')
})

test('the order reaches an agent that is connected to another coordinator', async () => {
  const second = await c.another()
  await aRun(c, { workflow: workflow.slug })
  const agent = (await anAgent(c)).at(second)
  agents.push(agent)
  const link = await agent.connect()
  const [offer] = await agent.poll()
  await link.accept(offer!)
  await cancel(offer!.run, 'from afar')
  assert.equal((await link.next('cancel')).runs[0]?.reason, 'from afar')
  assert.deepEqual(
    (await link.heartbeat(1, placementOf(offer!))).cancel.map((order) => order.run),
    [offer!.run],
  )
  await link.report(offer!, 1, end({ how: 'cancelled', forced: false }))
  assert.equal((await runOf(c, offer!.run)).status, 'cancelled')
})

test('an agent that says nothing holds the run no longer than the deadline', async () => {
  const { link, offer } = await aRunningRun()
  await cancel(offer.run)
  // The grace of a second and the lease: aged instead of waited for.
  await c.db`select graphile_worker.reschedule_jobs(array(select id from graphile_worker.jobs where key = ${`cancel:${offer.run}`}), now())`
  await until('the end of the run', async () => (await runOf(c, offer.run)).status === 'cancelled')
  assert.deepEqual(await link.report(offer, 2, end({ how: 'cancelled', forced: true })), { kind: 'stale' })
  assert.deepEqual((await typesOf(c, offer.run)).slice(-2), ['run.cancelling', 'run.cancelled'])
})

test('a large tree is cancelled for a while by whoever asks, and then by slices of a job', async () => {
  const { id: root } = await aRun(c, { workflow: workflow.slug })
  const ids = Array.from({ length: 450 }, () => newId('run'))
  await c.db`
    insert into runs (id, org_id, workflow_id, version_id, pool_id, status, cursor, trigger_kind, input, needs,
                      parent_run_id, parent_entry, root_run_id, depth)
    select made.id, r.org_id, r.workflow_id, r.version_id, r.pool_id, 'queued', 1, 'run', 'null', r.needs,
           r.id, made.n, r.id, 1
    from runs r
    cross join unnest(${ids}::text[]) with ordinality as made (id, n)
    where r.id = ${root}`
  await c.db`
    insert into run_queue (run_id, pool_id, priority, needs)
    select id, pool_id, 0, needs
    from runs
    where id = any(${ids})`
  const left = async () => {
    const [row] = await c.db<{ count: number }[]>`
      select count(*)::int as count from runs where id = any(${ids}) and status = 'queued'`
    return row!.count
  }
  const of = { orgId: c.orgId, runId: root }
  const ask = { by: 'somebody', reason: 'enough' }
  assert.equal(await cancelDescendants(c.deps, of, ask, 0), false)
  assert.equal(await left(), 250)
  assert.equal(await cancelDescendants(c.deps, of, ask), true)
  assert.equal(await left(), 0)
  assert.equal((await c.db`select from run_queue where run_id = any(${ids})`).length, 0)
  await cancel(root)
})

test('asking again cancels what an earlier cancel has left below', async () => {
  const { id: parent } = await aRun(c, { workflow: workflow.slug })
  await cancel(parent)
  const { id: child } = await aRun(c, { workflow: workflow.slug })
  await c.db`
    update runs
    set parent_run_id = ${parent}, parent_entry = 1, root_run_id = ${parent}, depth = 1
    where id = ${child}`
  await cancel(parent)
  assert.equal((await runOf(c, child)).status, 'cancelled')
})

test('lists by status and tag find all of these runs', () => assertInStep(c.db, c.orgId))
