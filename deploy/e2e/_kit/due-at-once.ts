/** Schedules that are all due at one moment, while one of two coordinators is killed. */
import assert from 'node:assert/strict'
import { setTimeout as wait } from 'node:timers/promises'
import { newId } from '@windlass/shared/ids.ts'
import type { Cluster } from './cluster.ts'
import { until } from './until.ts'

export interface DueAtOnce {
  /** From the moment at which they were due to the creation of the last run. */
  lastMs: number
  /** Triggers of a caller meanwhile, each until its answer. */
  triggerMs: number[]
  runs: number
}

/** From the time when they are written on. */
const DUE_MS = 3000

/**
 * `count` schedules of a workflow are due in the same instant. As soon as the first run is there, a coordinator is
 * killed by SIGKILL. Fails unless each schedule has started one run.
 */
export async function dueAtOnce(cluster: Cluster, workflow: string, count: number): Promise<DueAtOnce> {
  const { client } = cluster
  const { db } = cluster.database
  const { schedule } = await client.schedules.create({ workflow, rate: '1h', input: {} })
  const ids = Array.from({ length: count }, () => newId('sch'))
  const [{ at }] = await db<[{ at: number }]>`
    with time as (select date_trunc('milliseconds', now() + ${DUE_MS} * interval '1 millisecond') as at),
    written as (
      insert into schedules (id, org_id, workflow_id, source, kind, rate_ms, anchor_at, created_by, input,
                             settled_at, next_at, due_at)
      select t.id, s.org_id, s.workflow_id, 'api', 'rate', s.rate_ms, time.at - interval '1 hour', s.created_by,
             s.input, s.settled_at, time.at, time.at
      from unnest(${ids}::text[]) as t (id)
      cross join time
      cross join schedules s
      where s.id = ${schedule.id}
    )
    select (extract(epoch from at) * 1000)::float8 as at from time`
  const triggerMs: number[] = []
  const done = new AbortController()
  const caller = callAgain(cluster, workflow, triggerMs, done.signal)
  const runs = async () => {
    const [row] = await db<[{ count: number }]>`
      select count(*)::int as count from runs where trigger_kind = 'schedule' and trigger_id <> ${schedule.id}`
    return row.count
  }
  await until('the first run', async () => (await runs()) > 0)
  process.kill(cluster.pid(1), 'SIGKILL')
  await until('a run of each', async () => (await runs()) >= count, { ms: 120_000 })
  done.abort()
  await caller
  const [seen] = await db<[{ schedules: number; runs: number; ticks: number; last: number }]>`
    select count(distinct trigger_id)::int as schedules, count(*)::int as runs,
           count(distinct tick_at)::int as ticks, (extract(epoch from max(created_at)) * 1000)::float8 as last
    from runs
    where trigger_kind = 'schedule' and trigger_id = any(${ids})`
  assert.deepEqual([seen.schedules, seen.runs, seen.ticks], [count, count, 1])
  const [{ due }] = await db<[{ due: number }]>`
    select count(*)::int as due from schedules where due_at is not null and due_at <= now()`
  assert.equal(due, 0)
  return { lastMs: seen.last - at, triggerMs, runs: seen.runs }
}

/** Triggers runs one after the other, as long as the signal lets it. */
async function callAgain({ client }: Cluster, workflow: string, took: number[], signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    const since = performance.now()
    await client.runs.trigger({ workflow, input: {} })
    took.push(performance.now() - since)
    await wait(20)
  }
}
