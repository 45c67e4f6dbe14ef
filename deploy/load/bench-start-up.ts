import { bareSpawnMs, bareSpawnsPerSecond, median, now, percentile, wait } from './measure.ts'
import { type BenchInstance, until } from './bench-instance.ts'
import type { Run } from '@windlass/shared/model/run.ts'
import { httpLoad, openPoster } from './http-load.ts'
import { atLeast, atMost, type Report } from './report.ts'

/** Time for the agent to boot the next spare: what is measured is a warm agent, not the refill. */
const REFILL_MS = 100
const AWAY_MS = 60
/** Runs before the first sample, so that what is measured is a service in use and not one that has just started. */
const WARM_UP_RUNS = 1500

/** Trigger → the program's first statement, beside a bare `node -e 0`. */
export async function benchFirstLine(instance: BenchInstance, report: Report, repeats: number): Promise<void> {
  await runsPerSecond(instance, 'noop-reuse', WARM_UP_RUNS)
  const { samples, spawns } = await firstLines(instance, 'first-line', 60 * repeats, REFILL_MS)
  const bare = median(spawns)
  report({ name: 'bare node -e 0, spawn to exit p50', value: bare, unit: 'ms' })
  const p50 = median(samples)
  const p99 = percentile(samples, 0.99)
  report({
    name: 'trigger to first line, spare, p50',
    value: p50,
    unit: 'ms',
    ratio: { to: 'bare spawn', value: p50 / bare },
    goal: atMost(p50 / bare, 0.25, '×'),
  })
  report({
    name: 'trigger to first line, spare, p99',
    value: p99,
    unit: 'ms',
    ratio: { to: 'bare spawn', value: p99 / bare },
    goal: atMost(p99 / bare, 1, '×'),
  })
  const reused = await firstLines(instance, 'first-line-reuse', 60 * repeats, 5)
  const reusedP50 = median(reused.samples)
  report({
    name: 'trigger to first line, reuse, p50',
    value: reusedP50,
    unit: 'ms',
    ratio: { to: 'bare spawn', value: reusedP50 / bare },
  })
}

async function firstLines(instance: BenchInstance, slug: string, count: number, pauseMs: number) {
  const { client, url, apiKey } = instance
  const samples: number[] = []
  const spawns: number[] = []
  const poster = await openPoster({ url, path: `/v1/orgs/default/workflows/${slug}/runs`, apiKey, body: '{}' })
  // The first ones warm up: bundle, connections, prepared statements.
  for (let i = -20; i < count; i++) {
    const sentAt = now()
    const { body } = await poster.post()
    const { run } = JSON.parse(body) as { run: Run }
    // Not asked before it is over: every question would be work in the way of what is measured.
    await wait(AWAY_MS)
    await until(async () => (await client.runs.get({ run: run.id })).run.finishedAt !== null, 20_000)
    const { output } = await client.runs.output({ run: run.id })
    if (i >= 0) samples.push(Number(output) - sentAt)
    if (i >= 0 && i % 5 === 0) spawns.push(await bareSpawnMs())
    await wait(pauseMs)
  }
  poster.close()
  return { samples, spawns }
}

const LANES = 4

/** No-op runs a second, from the first trigger to the last completed, in processes of their own and in reused ones. */
export async function benchProcesses(instance: BenchInstance, report: Report, repeats: number): Promise<void> {
  const machine: number[] = []
  const fresh: number[] = []
  const reuse: number[] = []
  await runsPerSecond(instance, 'noop-reuse', 100)
  for (let i = 0; i < repeats; i++) {
    machine.push(await bareSpawnsPerSecond(LANES, 100))
    fresh.push(await runsPerSecond(instance, 'noop-fresh', 150))
    reuse.push(await runsPerSecond(instance, 'noop-reuse', 2000))
  }
  // Neighbours in time: the machine's speed drifts.
  const ratio = median(fresh.map((value, i) => value / machine[i]!))
  report({ name: 'bare node -e 0 spawns', value: median(machine), unit: '/s', repeats: machine })
  report({
    name: 'no-op runs, fresh process, 8 slots',
    value: median(fresh),
    unit: '/s',
    repeats: fresh,
    ratio: { to: 'bare spawns', value: ratio },
    goal: atLeast(ratio, 0.85, '×'),
  })
  report({
    name: 'no-op runs, reused process, one agent of 8 slots',
    value: median(reuse),
    unit: '/s',
    repeats: reuse,
    goal: atLeast(median(reuse), 400, '/s'),
  })
}

export async function runsPerSecond(instance: BenchInstance, slug: string, count: number): Promise<number> {
  const before = await finished(instance)
  const since = performance.now()
  const load = await httpLoad({
    url: instance.url,
    path: `/v1/orgs/default/workflows/${slug}/runs`,
    apiKey: instance.apiKey,
    body: '{}',
    connections: Math.min(16, count),
    requests: count,
    expect: 201,
  })
  if (load.failed > 0) throw new Error(`${load.failed} triggers of ${slug} were refused`)
  await until(async () => (await finished(instance)) - before >= count, 120_000)
  return count / ((performance.now() - since) / 1000)
}

export async function finished({ db }: BenchInstance): Promise<number> {
  const [row] = await db<[{ n: number }]>`select count(*)::int as n from runs where finished_at is not null`
  return row.n
}
