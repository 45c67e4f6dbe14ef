/**
 * Tables through which all work passes. At night nothing may be left in them but their pages, and what the planner
 * learns then makes it read all of them for one key in the morning: claims of 100 runs took 150 ms beside 10,000 queued
 * ones, in place of 1. Autovacuum analyzes them again after a minute or more.
 */
import type { Log } from '@windlass/shared/log.ts'
import { pause } from '@windlass/shared/time.ts'
import type { Db } from './client.ts'

const TABLES = [
  'run_queue',
  'placements',
  'timers',
  'bulk_job_runs',
  'concurrency_slots',
  'concurrency_groups',
  'concurrency_waiters',
]
/** Fewer rows are read in no time. */
const MANY = 500
/** So many times as many rows as the planner believes. */
const TIMES = 10
const LOOK_MS = 5000

/** Analyzes the tables that hold many more rows than the planner believes. Answers their names. */
export async function renewStatistics(db: Db): Promise<string[]> {
  const rows = await db<{ name: string }[]>`
    select c.relname as name
    from pg_class c
    where c.relname = any(${TABLES}) and c.reltuples >= 0
    and c.relnamespace = quote_ident(current_schema())::regnamespace
    and pg_stat_get_live_tuples(c.oid) > greatest(${MANY}, ${TIMES} * c.reltuples)`
  // Another coordinator, or autovacuum, may be at it: then it need not be waited for.
  for (const { name } of rows) await db`analyze (skip_locked) ${db(name)}`
  return rows.map(({ name }) => name)
}

/** Looks every few seconds until the signal fires. */
export async function keepStatistics(db: Db, log: Log, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    await pause(LOOK_MS, signal)
    if (signal.aborted) return
    try {
      const names = await renewStatistics(db)
      if (names.length > 0) log.debug('database.analyzed', { tables: names })
    } catch (error) {
      log.debug('database.notAnalyzed', { error })
    }
  }
}
