import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { Run } from '@windlass/shared/model/run.ts'
import { ops } from '@windlass/shared/ops/index.ts'
import { DEADLINE_MS } from '@windlass/shared/test/_kit/until.ts'
import { cleanWaits } from '../../../engine/sweep/clean.ts'
import { sweepRunsOnce } from '../../../engine/sweep/sweep.ts'
import { ageDelays } from '../../_kit/ageing.ts'
import { anAgent, end, returned, takeNext } from '../../_kit/agent.ts'
import { aCoordinatorOfItsOwn, logOf, runOf, type TestCoordinator } from '../../_kit/coordinator.ts'
import { calls } from '../../_kit/journal.ts'
import { until } from '../../_kit/until.ts'
import { aVersion, aWorkflow, type TestWorkflow } from '../../_kit/workflow.ts'

const HOUR_MS = 3_600_000

let c: TestCoordinator
let other: TestCoordinator

before(async () => {
  c = await aCoordinatorOfItsOwn()
  other = await c.another()
})
after(() => c.stop())

let pools = 0

/** A debounced workflow in a pool of its own. */
async function aDebounced(debounce: object, more: object = {}) {
  const pool = `pool-${++pools}`
  const { runnerPool } = await c.call(ops.pools.create, { org: c.org, name: pool })
  const workflow = await aWorkflow(c, { descriptor: { pool, debounce, ...more } })
  return { workflow, pool, poolId: runnerPool.id }
}

interface Answer {
  status: number
  run: Run
  merged?: number
  error?: { code: string }
}

async function call(workflow: TestWorkflow, body: object, at: TestCoordinator = c): Promise<Answer> {
  const response = await fetch(`${at.url}/v1/orgs/${c.org}/workflows/${workflow.slug}/runs`, {
    method: 'POST',
    headers: { authorization: `Bearer ${at.apiKey}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
    signal: AbortSignal.timeout(DEADLINE_MS),
  })
  return { status: response.status, ...((await response.json()) as Omit<Answer, 'status'>) }
}

const inputOf = async (run: string) => (await c.call(ops.runs.input, { run })).input
const causesOf = async (run: string) => (await c.call(ops.runs.why, { run })).why.causes
const isQueued = async (run: string) => (await c.db`select from run_queue where run_id = ${run}`).length > 0

async function runsOf(workflow: TestWorkflow): Promise<string[]> {
  const rows = await c.db<{ id: string }[]>`select id from runs where workflow_id = ${workflow.id} order by id`
  return rows.map(({ id }) => id)
}

test('the first call makes the run, later ones replace its input and put it off', async () => {
  const { workflow, poolId } = await aDebounced({ wait: '1h' }, { timeout: { queue: '2h' } })
  const first = await call(workflow, { input: { n: 1 } })
  assert.deepEqual([first.status, first.merged, first.run.status], [201, undefined, 'queued'])
  assert.equal(first.run.queuedAt - first.run.createdAt, HOUR_MS)
  const [fresh] = await causesOf(first.run.id)
  assert.deepEqual([fresh?.code, fresh?.until], ['DEBOUNCED', first.run.queuedAt])
  assert.match(fresh!.message, /none has come yet/)
  const second = await call(workflow, { input: { n: 2 } })
  const third = await call(workflow, { input: { n: 3 } }, other)
  assert.deepEqual([second.status, second.merged, second.run.id], [200, 1, first.run.id])
  assert.deepEqual([third.status, third.merged, third.run.id], [200, 2, first.run.id])
  assert.ok(third.run.queuedAt >= second.run.queuedAt && second.run.queuedAt >= first.run.queuedAt)
  assert.deepEqual(await inputOf(first.run.id), { n: 3 })
  const [cause] = await causesOf(first.run.id)
  assert.match(cause!.message, /takes the input of the last; 2 calls were merged into it/)
  const log = (await logOf(c, first.run.id)).map(({ type, data }) => [type, (data as { merged?: number }).merged])
  assert.deepEqual(log, [
    ['run.queued', undefined],
    ['run.merged', 1],
    ['run.merged', 2],
  ])
  const [timer] = await c.db<[{ ms: number }]>`
    select round(extract(epoch from t.due_at - r.queued_at) * 1000)::float8 as ms
    from timers t
    join runs r on r.id = t.run_id
    where t.run_id = ${first.run.id} and t.kind = 'queue-timeout'`
  assert.equal(timer.ms, 2 * HOUR_MS)
  await ageDelays(c, first.run.id)
  const agent = await anAgent(c, { pool: poolId })
  const link = await agent.connect()
  const offer = await takeNext(agent, link)
  assert.deepEqual([offer.run, JSON.parse(offer.inputText)], [first.run.id, { n: 3 }])
  const next = await call(workflow, { input: { n: 4 } })
  assert.equal(next.status, 201)
  assert.notEqual(next.run.id, first.run.id)
  await link.report(offer, 2, end(returned(1)))
  assert.equal(await sweepRunsOnce(c.deps), 0)
})

test('however many calls come, the run begins `maxWait` after the first', async () => {
  const { workflow } = await aDebounced({ wait: '1h', maxWait: '90m' })
  const { run } = await call(workflow, {})
  await c.db`update debounces set latest_at = latest_at - interval '1 hour' where run_id = ${run.id}`
  const again = await call(workflow, {})
  assert.equal(again.merged, 1)
  assert.ok(again.run.queuedAt <= run.createdAt + HOUR_MS / 2 + 1000)
  const { debounce } = await c.deps.targets.resolve(c.orgId, workflow.slug as never).then((t) => t!.version.descriptor)
  assert.deepEqual(debounce, { waitMs: HOUR_MS, maxWaitMs: 1.5 * HOUR_MS, key: null })
})

test('calls are merged apart by key, environment and version; those without the field together', async () => {
  const { workflow, pool } = await aDebounced({ wait: '1h', key: 'input.document' })
  const { environment } = await c.call(ops.environments.create, { org: c.org, name: 'staging' })
  const asks = [
    { input: { document: 1 } },
    { input: { document: '1' } },
    { input: { document: 1 }, environment: environment.name },
    { input: {} },
    { input: { other: 1 } },
    { input: { document: 1, text: 'x' } },
  ]
  const answers = []
  for (const ask of asks) answers.push(await call(workflow, ask))
  const merged = answers.map((answer) => answer.merged ?? 0)
  assert.deepEqual(merged, [0, 0, 0, 0, 1, 1])
  assert.equal(answers[4]!.run.id, answers[3]!.run.id)
  assert.equal(answers[5]!.run.id, answers[0]!.run.id)
  await aVersion(c, workflow, { descriptor: { pool, debounce: { wait: '1h', key: 'input.document' } } })
  const next = await call(workflow, { input: { document: 1 } })
  assert.deepEqual([next.status, next.run.workflow.version], [201, 2])
  assert.deepEqual((await call(workflow, { input: { document: 1 }, version: 1 })).merged, 2)
})

test('a retry, a call from another run and one with a delay are not merged', async () => {
  const { workflow, poolId } = await aDebounced({ wait: '1h' })
  const { run } = await call(workflow, { input: 1 })
  const { run: retried } = await c.call(ops.runs.retry, { run: run.id })
  assert.equal(await isQueued(retried.id), true)
  const delayed = await call(workflow, { input: 2, delayMs: HOUR_MS })
  assert.equal(delayed.status, 201)
  assert.equal((await causesOf(delayed.run.id))[0]!.code, 'DELAYED')
  const agent = await anAgent(c, { pool: poolId })
  const link = await agent.connect()
  const offer = await takeNext(agent, link)
  await link.report(offer, 2, calls(1, workflow.slug, null))
  const [child] = await c.db<{ id: string }[]>`select id from runs where parent_run_id = ${offer.run}`
  assert.equal(await isQueued(child!.id), true)
  assert.equal(await inputOf(run.id), 1)
})

test('an idempotency key is that of the run into which its call was merged', async () => {
  const { workflow } = await aDebounced({ wait: '1h' })
  const first = await call(workflow, { input: 1, idempotencyKey: 'a' })
  const second = await call(workflow, { input: 2, idempotencyKey: 'b' })
  assert.deepEqual([second.status, second.merged, second.run.id], [200, 1, first.run.id])
  for (const [input, idempotencyKey] of [
    [1, 'a'],
    [2, 'b'],
  ] as const) {
    const again = await call(workflow, { input, idempotencyKey })
    assert.deepEqual([again.status, again.merged, again.run.id], [200, undefined, first.run.id])
  }
  assert.equal((await call(workflow, { input: 3, idempotencyKey: 'b' })).error?.code, 'IDEMPOTENCY_CONFLICT')
  // Repeated calls are no further calls.
  assert.equal(await inputOf(first.run.id), 2)
  assert.deepEqual(await runsOf(workflow), [first.run.id])
})

test('a call that does not fit leaves the run as it is', async () => {
  const pool = `pool-${++pools}`
  await c.call(ops.pools.create, { org: c.org, name: pool })
  const descriptor = { pool, debounce: { wait: '1h' } }
  const workflow = await aWorkflow(c, { descriptor, inputSchema: { type: 'number' } })
  const { run } = await call(workflow, { input: 1 })
  assert.equal((await call(workflow, { input: 'x' })).error?.code, 'VALIDATION_FAILED')
  assert.equal(await inputOf(run.id), 1)
  assert.equal((await logOf(c, run.id)).length, 1)
})

test('a run that was cancelled while it waited takes no further call', async () => {
  const { workflow } = await aDebounced({ wait: '1h' })
  const { run } = await call(workflow, { input: 1 })
  await c.call(ops.runs.cancel, { run: run.id })
  const next = await call(workflow, { input: 2 })
  assert.equal(next.status, 201)
  assert.equal((await call(workflow, { input: 3 })).run.id, next.run.id)
  assert.equal((await runOf(c, run.id)).status, 'cancelled')
  assert.equal(await inputOf(run.id), 1)
})

test('a run counts, and is throttled, by the input that it begins with', async () => {
  const { workflow } = await aDebounced(
    { wait: '1h' },
    { concurrency: { limit: 1, key: 'input.customer' }, throttle: { limit: 1, per: '1h', key: 'input.customer' } },
  )
  const { run } = await call(workflow, { input: { customer: 1 } })
  await call(workflow, { input: { customer: 2 } })
  await ageDelays(c, run.id)
  await until('it is in the queue', () => isQueued(run.id))
  const { run: next } = await call(workflow, { input: { customer: 2 } })
  await ageDelays(c, next.id)
  await until('it is throttled', async () => (await causesOf(next.id))[0]!.code === 'THROTTLED')
  await ageDelays(c, next.id)
  await until('it waits for room', async () => (await causesOf(next.id))[0]!.code === 'CONCURRENCY_LIMIT')
  assert.match((await causesOf(next.id))[0]!.message, /to 1 for each `input\.customer`, and 1 run of its group/)
})

test('of sixty calls at once on two coordinators there is one run, with the input of the last', async () => {
  const { workflow } = await aDebounced({ wait: '1h' })
  const answers = await Promise.all(
    Array.from({ length: 60 }, (_, i) => call(workflow, { input: i }, i % 2 ? c : other)),
  )
  assert.equal((await runsOf(workflow)).length, 1)
  const merged = answers.map((answer) => answer.merged ?? 0).sort((a, b) => a - b)
  assert.deepEqual(
    merged,
    Array.from({ length: 60 }, (_, i) => i),
  )
  const last = answers.findIndex((answer) => answer.merged === 59)
  assert.equal(await inputOf(answers[0]!.run.id), last)
})

test('calls at the very end of the wait are merged before it or make the next run, and none is lost', async () => {
  const { workflow, poolId } = await aDebounced({ wait: '1h' })
  const agent = await anAgent(c, { pool: poolId, slots: 100 })
  const link = await agent.connect()
  const answers: { input: number; answer: Answer }[] = []
  let input = 0
  const ask = async (at: TestCoordinator) => {
    const mine = ++input
    answers.push({ input: mine, answer: await call(workflow, { input: mine }, at) })
  }
  await ask(c)
  for (let round = 0; round < 15; round++) {
    const waiting = (await runsOf(workflow)).at(-1)!
    await Promise.all([ask(c), ageDelays(c, waiting), ask(other), ask(c), ask(other)])
  }
  for (const id of await runsOf(workflow)) await ageDelays(c, id)
  const ids = await runsOf(workflow)
  assert.ok(ids.length > 1)
  for (let i = 0; i < ids.length; i++) {
    const offer = await takeNext(agent, link)
    const of = answers.filter(({ answer }) => answer.run.id === offer.run)
    const order = of.toSorted((a, b) => (a.answer.merged ?? 0) - (b.answer.merged ?? 0))
    assert.deepEqual(
      order.map(({ answer }) => answer.merged ?? 0),
      order.map((_, n) => n),
    )
    assert.equal(JSON.parse(offer.inputText), order.at(-1)!.input)
    await link.report(offer, 2, end(returned(1)))
  }
  assert.equal(await sweepRunsOnce(c.deps), 0)
})

test('keys whose run waits no more are cleaned away', async () => {
  const { workflow } = await aDebounced({ wait: '1h' })
  const { run } = await call(workflow, {})
  const debounces = async () => (await c.db`select from debounces where run_id = ${run.id}`).length
  await cleanWaits(c)
  assert.equal(await debounces(), 1)
  await c.db`update debounces set latest_at = now() - interval '1 second' where run_id = ${run.id}`
  await cleanWaits(c)
  assert.equal(await debounces(), 0)
})

test('of many keys whose waits are over some are removed at a time, as callers wait for those', async () => {
  const { workflow } = await aDebounced({ wait: '1h' })
  const { run } = await call(workflow, {})
  const many = await c.db`
    insert into debounces (key, run_id, latest_at)
    select 'over ' || n, ${run.id}, now() - interval '1 second' from generate_series(1, 2500) n`
  assert.equal(many.count, 2500)
  await c.db.unsafe(`
    create table portions (keys int not null);
    create function count_portion() returns trigger language plpgsql as $$
    begin
      insert into portions select count(*) from gone;
      return null;
    end $$;
    create trigger counted after delete on debounces referencing old table as gone
      for each statement execute function count_portion()`)
  await cleanWaits(c)
  const portions = await c.db<{ keys: number }[]>`select keys from portions order by keys desc`
  await c.db.unsafe('drop trigger counted on debounces; drop function count_portion; drop table portions')
  assert.deepEqual(
    portions.map(({ keys }) => keys),
    [1000, 1000, 500],
  )
})
