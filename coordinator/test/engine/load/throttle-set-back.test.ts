// The clock of the database is ahead for a while, as after a failover to a host with a wrong clock, then right again.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import * as fc from 'fast-check'
import { ops } from '@windlass/shared/ops/index.ts'
import { putThrottlesBack } from '../../../engine/commit/throttle-set-back.ts'
import { turnOf, turnsAtMost } from '../../../engine/rules/holds.ts'
import { aCoordinatorOfItsOwn, aRun, type TestCoordinator } from '../../_kit/coordinator.ts'
import { makeClockMovable, moveClock } from '../../_kit/database-clock.ts'
import { until } from '../../_kit/until.ts'
import { aWorkflow } from '../../_kit/workflow.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE

let c: TestCoordinator

before(async () => {
  // Nobody sweeps but where a test does.
  c = await aCoordinatorOfItsOwn({ SWEEP_MS: HOUR }, { prepare: makeClockMovable })
})
after(() => c.stop())

/** In how many minutes each of these runs enters the queue, to the nearest ten; null: it has. */
async function turnsOf(t: TestCoordinator, ids: string[]): Promise<(number | null)[]> {
  const rows = await t.db<{ id: string; ms: number }[]>`
    select run_id as id, (extract(epoch from due_at - shifted.now()) * 1000)::float8 as ms
    from timers
    where kind = 'enqueue' and run_id = any(${ids})`
  const byId = new Map(rows.map(({ id, ms }) => [id, 10 * Math.round(ms / (10 * MINUTE))]))
  return ids.map((id) => byId.get(id) ?? null)
}

async function aThrottled(t: TestCoordinator, throttle: object) {
  const { slug } = await aWorkflow(t, { descriptor: { throttle, timeout: { queue: '2h' } } })
  return async (count: number): Promise<string[]> => {
    const ids: string[] = []
    for (let i = 0; i < count; i++) ids.push((await aRun(t, { workflow: slug, input: i })).id)
    return ids
  }
}

test('turns that the throttle explains stay; others come as early as it lets them, never beyond its limit', () => {
  const arrival = fc.record({ afterMs: fc.constantFrom(0, 0, 1, 7, 30), aheadMs: fc.constantFrom(0, 0, 0, 1000) })
  fc.assert(
    fc.property(fc.array(arrival, { maxLength: 60 }), fc.constantFrom(1, 2, 5), (arrivals, limit) => {
      const rule = { limit, perMs: 20 }
      const starts = new Map<number, number>()
      let now = 0
      let wasAhead = false
      for (const [i, { afterMs, aheadMs }] of arrivals.entries()) {
        now += afterMs
        wasAhead ||= aheadMs > 0
        turnOf(starts, i + 1, { key: 'k', ...rule }, now + aheadMs)
      }
      const waiting = [...starts.values()].filter((at) => at > now)
      const turns = turnsAtMost(waiting, rule, now)
      if (!wasAhead) assert.deepEqual(turns, waiting)
      for (const [i, at] of turns.entries()) {
        assert.ok(at >= (turns[i - 1] ?? now) && at <= now + (Math.floor(i / limit) + 1) * rule.perMs)
        assert.ok(i < limit || at - turns[i - limit]! >= rule.perMs)
      }
    }),
  )
})

test('runs that were throttled by a clock that was ahead wait no longer than their throttle says', async () => {
  const start = await aThrottled(c, { limit: 2, per: '10m' })
  await start(2)
  await moveClock(c.db, 2 * HOUR)
  // Two enter at once, by the wrong clock.
  const ahead = await start(5)
  await moveClock(c.db, -2 * HOUR)
  const later = await start(1)
  const waiting = [...ahead, ...later]
  assert.deepEqual(await turnsOf(c, waiting), [null, null, 130, 130, 140, 140])
  assert.equal(await putThrottlesBack(c.deps), 4)
  assert.deepEqual(await turnsOf(c, waiting), [null, null, 10, 10, 20, 20])
  // A run that comes now has its turn behind them, and keeps it.
  const [next] = await start(1)
  assert.deepEqual(await turnsOf(c, [next!]), [30])
  assert.equal(await putThrottlesBack(c.deps), 0)
  const rows = await c.db<{ isTurn: boolean; queueMs: number }[]>`
    select r.queued_at = e.due_at as is_turn, (extract(epoch from q.due_at - e.due_at) * 1000)::float8 as queue_ms
    from runs r
    join timers e on e.run_id = r.id and e.kind = 'enqueue'
    join timers q on q.run_id = r.id and q.kind = 'queue-timeout'
    where r.id = any(${waiting})`
  assert.deepEqual(
    rows.map(({ isTurn, queueMs }) => [isTurn, Math.round(queueMs / MINUTE)]),
    Array.from({ length: 4 }, () => [true, 120]),
  )
})

test('with nobody waiting, the next run does not wait for those that entered by the wrong clock', async () => {
  const start = await aThrottled(c, { limit: 1, per: '10m' })
  await moveClock(c.db, 2 * HOUR)
  await start(1)
  await moveClock(c.db, -2 * HOUR)
  assert.equal(await putThrottlesBack(c.deps), 0)
  assert.deepEqual(await turnsOf(c, await start(1)), [10])
})

test('a long line keeps its turns, and a run that somebody is changing gets its own when he has done so', async () => {
  const start = await aThrottled(c, { limit: 1, per: '10m' })
  const line = await start(6)
  assert.equal(await putThrottlesBack(c.deps), 0)
  assert.deepEqual(await turnsOf(c, line), [null, 10, 20, 30, 40, 50])
  await c.call(ops.runs.cancel, { run: line[5]! })
  await c.db`update timers set due_at = due_at + interval '2 hours' where run_id = ${line[4]!}`
  const done = await c.db.begin(async (tx) => {
    await tx`select from runs where id = ${line[4]!} for update`
    const put = putThrottlesBack(c.deps)
    await until('it is passed over', async () => {
      const [row] =
        await c.db`select n from throttle_starts where at < shifted.now() + interval '45 minutes' and key in (
        select holds::jsonb #>> '{throttle,key}' from timers where run_id = ${line[4]!})`
      return row !== undefined
    })
    return { put }
  })
  assert.equal(await done.put, 1)
  assert.deepEqual(await turnsOf(c, line.slice(0, 5)), [null, 10, 20, 30, 40])
})

test('a coordinator whose pulse finds that the clock was set back puts its throttles right', async () => {
  const sweeping = await aCoordinatorOfItsOwn({ SWEEP_MS: 50 }, { prepare: makeClockMovable })
  try {
    const start = await aThrottled(sweeping, { limit: 1, per: '10m' })
    const pulseAt = async () =>
      (await sweeping.db<[{ at: number }]>`select extract(epoch from at)::float8 as at from pulse`)[0].at
    const before = await pulseAt()
    await moveClock(sweeping.db, 2 * HOUR)
    const ids = await start(2)
    await until('a pulse has seen it', async () => (await pulseAt()) > before + 7000)
    await moveClock(sweeping.db, -2 * HOUR)
    await until('it has its turn', async () => (await turnsOf(sweeping, ids))[1] === 10)
  } finally {
    await sweeping.stop()
  }
})
