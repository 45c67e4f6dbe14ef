import type { Db } from '@windlass/coordinator/db/client.ts'
import type { BenchInstance } from './bench-instance.ts'
import { openPoster } from './http-load.ts'
import { median } from './measure.ts'
import { atMost, type Report } from './row.ts'
import { load } from './settled.ts'

const SAMPLES = 300
/** A statement that reads all runs of the org takes seconds; a few of those say enough. */
const FOR_MS = 2000
const WARM_UP = 100
const GOAL_MS = 0.5
const FIRST_RUNS = 2000
const CALLERS = 64

export interface Asked {
  run: string
  repeats: number
  /** Fills the org with runs. Its last statement is a `vacuum` that gives the planner statistics. */
  seed: (db: Db) => Promise<void>
}

/**
 * Reads one run at a time, in an org with very many. First with plans that PostgreSQL made after a few thousand runs,
 * when the table had no statistics: it then believes that an org has a handful of runs. Then with statistics.
 */
export async function benchGetRun(
  instance: BenchInstance,
  report: Report,
  { run, repeats, seed }: Asked,
): Promise<void> {
  await instance.db`create extension if not exists pg_stat_statements`
  await withoutStatistics(instance)
  const agent = await instance.simulateAgent({ slots: CALLERS })
  await load(instance, { slug: 'noop-fresh', runs: FIRST_RUNS, callers: CALLERS })
  agent.close()
  // Once more: this discards the plans for the empty table.
  await withoutStatistics(instance)
  await looks(instance, run)
  const vacuums: (() => PromiseLike<unknown>)[] = []
  await seed(postponing(instance.db, vacuums))
  await measure(instance, report, { run, repeats, when: 'before statistics' })
  for (const vacuum of vacuums) await vacuum()
  await instance.db`alter table runs reset (autovacuum_enabled)`
  await measure(instance, report, { run, repeats, when: 'with statistics' })
}

/** Keeps autovacuum from making statistics of the table. */
async function withoutStatistics({ db }: BenchInstance): Promise<void> {
  await db`alter table runs set (autovacuum_enabled = off)`
}

interface Measuring {
  run: string
  repeats: number
  when: string
}

async function measure(instance: BenchInstance, report: Report, { run, repeats, when }: Measuring): Promise<void> {
  const latencies: number[] = []
  const statements: number[] = []
  for (let i = 0; i < repeats; i++) {
    await instance.db`select pg_stat_statements_reset()`
    const times = await looks(instance, run)
    latencies.push(median(times))
    statements.push(await statementMs(instance, times.length))
  }
  const name = `get run, one at a time, ${when}`
  const row = (what: string, repeated: number[]) => {
    const value = median(repeated)
    report({ name: `${name}${what}`, value, unit: 'ms', repeats: repeated, goal: atMost(value, GOAL_MS, 'ms') })
  }
  row(', p50', latencies)
  row(': in the database', statements)
}

/** Reads the run again and again; returns how long each request took, in milliseconds. */
async function looks({ url, apiKey }: BenchInstance, run: string): Promise<number[]> {
  const poster = await openPoster({ url, apiKey, path: `/v1/runs/${run}`, method: 'GET' })
  const times: number[] = []
  const begun = performance.now()
  for (let i = -WARM_UP; i < SAMPLES; i++) {
    const since = performance.now()
    const { status } = await poster.post()
    if (status !== 200) throw new Error(`a run was answered with ${status}`)
    times.push(performance.now() - since)
    if (times.length > 3 && performance.now() - begun > FOR_MS) break
  }
  poster.close()
  return times.slice(Math.min(WARM_UP, times.length >> 1))
}

/** Time in the database for each request. Statements with far fewer calls come from elsewhere. */
async function statementMs({ db }: BenchInstance, count: number): Promise<number> {
  const [row] = await db<[{ ms: number }]>`
    select coalesce(sum(mean_exec_time), 0)::float8 as ms
    from pg_stat_statements
    where calls >= ${count >> 1} and query not like '%pg_stat_statements%'`
  return row.ms
}

/** The same database, but it puts off `vacuum` statements into `later`. */
function postponing(db: Db, later: (() => PromiseLike<unknown>)[]): Db {
  return new Proxy(db, {
    apply(target, self, args: [TemplateStringsArray]) {
      const statement = () => Reflect.apply(target, self, args) as PromiseLike<unknown>
      if (!args[0][0]?.trimStart().startsWith('vacuum')) return statement()
      later.push(statement)
      return Promise.resolve([])
    },
  })
}
