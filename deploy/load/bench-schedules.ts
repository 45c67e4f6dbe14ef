import { copiesOf } from '@windlass/coordinator/test/_kit/schedules.ts'
import { statementsSeen } from './bench-idle.ts'
import type { BenchInstance } from './bench-instance.ts'
import { median, wait } from './measure.ts'
import { atMost, type Report } from './row.ts'

const SCHEDULES = 10_000
const SETTLE_MS = 5000
const WATCH_MS = 10_000
/** All are due at once, so long after they are written. */
const DUE_MS = 5000
const WITHIN_MS = 120_000
const LOOK_MS = 200

/** Ten thousand schedules: what they cost while none is due, and how long it takes when all are. */
export async function benchSchedules(instance: BenchInstance, report: Report, repeats: number): Promise<void> {
  const { client, db } = instance
  await db`create extension if not exists pg_stat_statements`
  const { schedule } = await client.schedules.create({ workflow: 'noop-reuse', rate: '366d' })
  await wait(SETTLE_MS)
  const without = await watched(instance, repeats)
  await copiesOf(instance, schedule, SCHEDULES)
  await db`analyze schedules`
  const beside = await watched(instance, repeats)
  const more = median(beside) - median(without)
  report({
    name: `database statements beside ${SCHEDULES} schedules`,
    value: median(beside),
    unit: '/s',
    repeats: beside,
    better: 'lower',
    goal: atMost(more, 5, '/s more than without'),
    note: `${median(without).toFixed(1)}/s without them`,
  })
  await reportDue(instance, report)
}

async function watched(instance: BenchInstance, repeats: number): Promise<number[]> {
  const rates: number[] = []
  for (let i = 0; i < repeats; i++) {
    await instance.db`select pg_stat_statements_reset()`
    const since = performance.now()
    await wait(WATCH_MS)
    rates.push((await statementsSeen(instance)) / ((performance.now() - since) / 1000))
  }
  return rates
}

async function reportDue(instance: BenchInstance, report: Report): Promise<void> {
  const { db } = instance
  const [{ at }] = await db<[{ at: number }]>`
    with time as (select now() + ${DUE_MS} * interval '1 millisecond' as at),
    moved as (
      update schedules
      set next_at = time.at, due_at = time.at, rate_ms = 86400000, anchor_at = time.at - interval '1 day'
      from time
    )
    select (extract(epoch from at) * 1000)::float8 as at from time`
  const created = async () => {
    const [row] = await db<[{ count: number }]>`select count(*)::int as count from runs where trigger_kind = 'schedule'`
    return row.count
  }
  const since = performance.now()
  // Nobody executes them: they wait in the queue.
  while ((await created()) <= SCHEDULES) {
    if (performance.now() - since > WITHIN_MS) throw new Error(`not all had started after ${WITHIN_MS} ms`)
    await wait(LOOK_MS)
  }
  const [{ last }] = await db<[{ last: number }]>`
    select (extract(epoch from max(created_at)) * 1000)::float8 as last from runs where trigger_kind = 'schedule'`
  const seconds = (last - at) / 1000
  report({
    name: 'all due at once, until the last run is queued',
    value: seconds,
    unit: 's',
    goal: atMost(seconds, 10, 's'),
  })
}
