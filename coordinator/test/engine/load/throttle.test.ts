import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import * as fc from 'fast-check'
import type { RunId } from '@windlass/shared/ids.ts'
import { ops } from '@windlass/shared/ops/index.ts'
import { takeTurns } from '../../../engine/commit/throttle.ts'
import { commitTriggers, prepareRun } from '../../../engine/commit/trigger.ts'
import { turnOf } from '../../../engine/rules/holds.ts'
import { cleanWaits } from '../../../engine/sweep/clean.ts'
import { sweepRunsOnce } from '../../../engine/sweep/sweep.ts'
import { noCredential } from '../../../stay.ts'
import { ageDelays } from '../../_kit/ageing.ts'
import { anAgent, end, returned, takeNext } from '../../_kit/agent.ts'
import { aCoordinatorOfItsOwn, aRun, runOf, type TestCoordinator } from '../../_kit/coordinator.ts'
import { calls } from '../../_kit/journal.ts'
import { until } from '../../_kit/until.ts'
import { aVersion, aWorkflow } from '../../_kit/workflow.ts'

const HOUR_MS = 3_600_000

let c: TestCoordinator
let other: TestCoordinator

before(async () => {
  c = await aCoordinatorOfItsOwn()
  other = await c.another()
})
after(() => c.stop())

let pools = 0

/** A throttled workflow in a pool of its own. */
async function aThrottled(throttle: object, more: object = {}) {
  const pool = `pool-${++pools}`
  const { runnerPool } = await c.call(ops.pools.create, { org: c.org, name: pool })
  const workflow = await aWorkflow(c, { descriptor: { pool, throttle, ...more } })
  return { workflow, pool: runnerPool }
}

const causesOf = async (run: string) => (await c.call(ops.runs.why, { run })).why.causes
const isQueued = async (run: string) => (await c.db`select from run_queue where run_id = ${run}`).length > 0

/** How much later than its creation a run may enter the queue, in milliseconds. */
async function delayOf(run: string): Promise<number> {
  const [row] = await c.db<[{ ms: number }]>`
    select round(extract(epoch from queued_at - created_at) * 1000)::float8 as ms from runs where id = ${run}`
  return row.ms
}

test('never more than the limit start within the time, and in the order of their arrival', () => {
  const arrival = fc.record({ afterMs: fc.constantFrom(0, 0, 1, 7, 30), limit: fc.constantFrom(3, 3, 3, 2, 5) })
  fc.assert(
    fc.property(fc.array(arrival, { maxLength: 60 }), (arrivals) => {
      const perMs = 20
      const starts = new Map<number, number>()
      let now = 0
      for (const [i, { afterMs, limit }] of arrivals.entries()) {
        now += afterMs
        const start = turnOf(starts, i + 1, { key: 'k', limit, perMs }, now)
        const before = [...starts.values()].slice(0, i)
        assert.ok(start >= now && start >= Math.max(...before, 0))
        assert.ok(before.filter((at) => at > start - perMs).length < limit, 'others start within the same time')
        // It waits for nothing else than these two.
        const isEarliest = [now, before.at(-1), (before[i - limit] ?? -Infinity) + perMs].includes(start)
        assert.ok(isEarliest, `${start} of ${arrivals.length}`)
      }
    }),
  )
})

test('a run beyond the limit enters the queue when its turn has come, and `why` says when that is', async () => {
  const { workflow, pool } = await aThrottled({ limit: 2, per: '1h' })
  const runs = []
  for (let i = 0; i < 5; i++) runs.push(await aRun(c, { workflow: workflow.slug, input: i }))
  const delays = runs.map((run) => run.queuedAt - run.createdAt)
  assert.deepEqual(delays.slice(0, 2), [0, 0])
  for (const [i, run] of runs.entries()) {
    const { queuedAt } = await runOf(c, run.id)
    assert.ok(Math.abs(queuedAt - run.queuedAt) < 2, 'as it was answered')
    if (i >= 2) assert.equal(Math.round((queuedAt - runs[i - 2]!.queuedAt) / HOUR_MS), 1)
    assert.equal(await isQueued(run.id), i < 2)
  }
  const [cause, ...more] = await causesOf(runs[2]!.id)
  assert.deepEqual([cause?.code, more], ['THROTTLED', []])
  assert.ok(Math.abs(cause!.until! - runs[2]!.queuedAt) < 2)
  assert.match(cause!.message, /lets 2 runs enter the queue within 60 min; its turn is at /)
  const agent = await anAgent(c, { pool: pool.id })
  const link = await agent.connect()
  for (let i = 0; i < 2; i++) await link.report(await takeNext(agent, link), 2, end(returned(1)))
  assert.deepEqual(await agent.poll(1, 0), [])
  await ageDelays(c, runs[2]!.id)
  const offer = await takeNext(agent, link)
  assert.equal(offer.run, runs[2]!.id)
  await link.report(offer, 2, end(returned(1)))
  for (const { id } of runs.slice(3)) await c.call(ops.runs.cancel, { run: id })
  assert.equal(await sweepRunsOnce(c.deps), 0)
})

test('with a hundred triggers at once on two coordinators the limit holds to the millisecond', async () => {
  const { workflow } = await aThrottled({ limit: 7, per: '1m' })
  const asked = Array.from({ length: 100 }, (_, i) => aRun(i % 2 ? c : other, { workflow: workflow.slug }))
  const answered = await Promise.all(asked)
  const rows = await c.db<{ id: string; at: number; isIn: boolean }[]>`
    select r.id, (extract(epoch from r.queued_at) * 1000)::float8 as at, q.run_id is not null as is_in
    from runs r
    left join run_queue q on q.run_id = r.id
    where workflow_id = ${workflow.id}
    order by r.queued_at`
  assert.equal(rows.length, 100)
  assert.equal(rows.filter(({ isIn }) => isIn).length, 7)
  for (let i = 7; i < rows.length; i++) {
    const ms = rows[i]!.at - rows[i - 7]!.at
    // All that could start at once did so: no time is lost.
    assert.ok(ms > 60_000 - 1 && ms < 60_000 + 5000, `${ms} ms between ${i - 7} and ${i}`)
  }
  // The answer adds two times that are cut to whole milliseconds.
  for (const run of answered) assert.ok(Math.abs(run.queuedAt - rows.find(({ id }) => id === run.id)!.at) < 2)
})

test('runs are throttled apart by the field that the throttle names; those without it share a turn', async () => {
  const { workflow } = await aThrottled({ limit: 1, per: '1h', key: 'input.customer.id' })
  const inputs = [{ customer: { id: 1 } }, { customer: { id: 2 } }, { customer: { id: 1 } }, {}, null, 'x']
  const delays: number[] = []
  for (const input of inputs) {
    const run = await aRun(c, { workflow: workflow.slug, input })
    delays.push(Math.round((run.queuedAt - run.createdAt) / HOUR_MS))
  }
  assert.deepEqual(delays, [0, 0, 1, 0, 1, 2])
  const [{ id }] = await c.db<[{ id: string }]>`
    select id from runs where workflow_id = ${workflow.id} order by id offset 2 limit 1`
  assert.match((await causesOf(id))[0]!.message, /lets 1 run with this `input\.customer\.id` enter/)
})

test('a run with a delay takes its turn when that is over, and waits as long in the queue as it may', async () => {
  const { workflow } = await aThrottled({ limit: 1, per: '1h' }, { timeout: { queue: '2h' } })
  const ask = { org: c.org, workflow: workflow.slug, delayMs: HOUR_MS }
  const { run: later } = await c.call(ops.runs.trigger, ask)
  const first = await aRun(c, { workflow: workflow.slug })
  assert.equal(first.queuedAt, first.createdAt)
  assert.equal((await causesOf(later.id))[0]!.code, 'DELAYED')
  await ageDelays(c, later.id)
  await until('its turn is set', async () => (await causesOf(later.id))[0]!.code === 'THROTTLED')
  assert.equal(Math.round((await delayOf(later.id)) / HOUR_MS), 1)
  assert.equal(await isQueued(later.id), false)
  await ageDelays(c, later.id)
  await until('it is in the queue', () => isQueued(later.id))
})

test('the time in the queue begins with the turn', async () => {
  const { workflow } = await aThrottled({ limit: 1, per: '1h' }, { timeout: { queue: '2h' } })
  await aRun(c, { workflow: workflow.slug })
  const next = await aRun(c, { workflow: workflow.slug })
  const [timer] = await c.db<[{ ms: number }]>`
    select round(extract(epoch from t.due_at - r.queued_at) * 1000)::float8 as ms
    from timers t
    join runs r on r.id = t.run_id
    where t.run_id = ${next.id} and t.kind = 'queue-timeout'`
  assert.equal(timer.ms, 2 * HOUR_MS)
})

test('a run that another calls takes its turn as well', async () => {
  const { workflow } = await aThrottled({ limit: 1, per: '1h' })
  await aRun(c, { workflow: workflow.slug })
  const { workflow: parent, pool } = await aThrottled({ limit: 1, per: '1h' })
  await aRun(c, { workflow: parent.slug })
  const agent = await anAgent(c, { pool: pool.id })
  const link = await agent.connect()
  const offer = await takeNext(agent, link)
  await link.report(offer, 2, calls(1, workflow.slug, null))
  const [child] = await c.db<{ id: RunId }[]>`select id from runs where parent_run_id = ${offer.run}`
  await until('its turn is set', async () => (await causesOf(child!.id))[0]!.code === 'THROTTLED')
  assert.equal(Math.round((await delayOf(child!.id)) / HOUR_MS), 1)
  await link.report(offer, 3, end(returned(1)))
})

test('a throttled run of limited concurrency waits for its turn, then for room', async () => {
  const { workflow } = await aThrottled({ limit: 1, per: '1h' }, { concurrency: 1 })
  const first = await aRun(c, { workflow: workflow.slug })
  const second = await aRun(c, { workflow: workflow.slug })
  assert.equal(await isQueued(first.id), true)
  assert.equal((await causesOf(second.id))[0]!.code, 'THROTTLED')
  await ageDelays(c, second.id)
  await until('it waits for room', async () => (await causesOf(second.id))[0]!.code === 'CONCURRENCY_LIMIT')
  await c.call(ops.runs.cancel, { run: first.id })
  assert.equal(await isQueued(second.id), true)
})

test('triggers whose commit was not heard of take one turn', async () => {
  const { workflow } = await aThrottled({ limit: 1, per: '1h' })
  const ask = { workflow: workflow.id, tags: [], priority: 0, trigger: { kind: 'api' as const } }
  const prepare = async () => (await prepareRun(c.deps, { orgId: c.orgId, actor: null, ...noCredential }, ask)).run
  const runs = [await prepare(), await prepare()]
  await commitTriggers(c.db, runs)
  await commitTriggers(c.db, runs)
  const next = await aRun(c, { workflow: workflow.slug })
  assert.equal(Math.round((next.queuedAt - next.createdAt) / HOUR_MS), 2)
})

test('a version with another rule does not wait for the turns of the one before it', async () => {
  const { workflow } = await aThrottled({ limit: 1, per: '31d' })
  for (let i = 0; i < 3; i++) await c.call(ops.runs.cancel, { run: (await aRun(c, { workflow: workflow.slug })).id })
  await aVersion(c, workflow, { descriptor: { throttle: { limit: 100, per: '1s' } } })
  const run = await aRun(c, { workflow: workflow.slug })
  assert.equal(run.queuedAt, run.createdAt)
})

test('throttles that delay nobody are cleaned away, with their starts; the others stay', async () => {
  const turn = (key: string, perMs: number) =>
    c.db.begin((tx) => takeTurns(tx, [{ id: 'run_any' as RunId, throttle: { key, limit: 2, perMs } }]))
  for (let i = 0; i < 3; i++) await turn('cleaned', 0)
  await turn('kept', HOUR_MS)
  // More than one statement takes away.
  await c.db`insert into throttles (key, last) values ('many', 12000)`
  await c.db`insert into throttle_starts (key, n, at) select 'many', n, now() from generate_series(1, 12000) n`
  const throttles = () =>
    c.db<{ key: string; n: string }[]>`select key, n from throttle_starts where key in ('cleaned', 'kept')`
  assert.deepEqual(
    (await throttles()).map(({ key, n }) => `${key} ${n}`),
    ['cleaned 2', 'cleaned 3', 'kept 1'],
  )
  await cleanWaits(c)
  assert.deepEqual(
    (await throttles()).map(({ key }) => key),
    ['kept'],
  )
  const gone = ['cleaned', 'many']
  assert.equal((await c.db`select from throttles where key = any(${gone})`).length, 0)
  assert.equal((await c.db`select from throttle_starts where key = any(${gone})`).length, 0)
})
