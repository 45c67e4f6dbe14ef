import type { Pool } from 'pg'
import type { Log } from '@windlass/shared/log.ts'
import { pause } from '@windlass/shared/time.ts'

/** A slice of a job takes seconds, and each of its statements half a minute at most. */
const DEAD_MS = 120_000
const LOOK_MS = 30_000

interface DeadDeps {
  pgPool: Pool
  log: Log
}

/**
 * Frees what workers have locked for long, for those whose lock (worker-locks.ts) tells nothing: they are of a version
 * before it, or were killed before they had it. graphile-worker itself waits four hours. Should one be alive after all,
 * its job is done twice, which each job bears.
 */
export async function freeDeadWorkers(deps: DeadDeps, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    try {
      await freeOnce(deps)
    } catch (error) {
      deps.log.warn('jobs.workers.failed', { error })
    }
    await pause(LOOK_MS, signal)
  }
}

/** Answers the workers whose jobs are free again. */
export async function freeOnce({ pgPool, log }: DeadDeps): Promise<string[]> {
  const { rows } = await pgPool.query<{ worker: string }>(LONG, [DEAD_MS])
  const workers = rows.map((row) => row.worker)
  if (workers.length === 0) return []
  await freeWorkers(pgPool, workers)
  log.warn('jobs.workers.dead', { workers })
  return workers
}

const LONG = `
  select distinct locked_by as worker
  from graphile_worker.jobs
  where locked_at < now() - $1 * interval '1 millisecond'`

/** What these have locked is free for others. */
export async function freeWorkers(pgPool: Pool, workers: readonly string[]): Promise<void> {
  await pgPool.query(`with dead as (select unnest($1::text[]) as id), ${FREED} select`, [workers])
}

/**
 * What those in `dead` have locked is free for others. Jobs have another number then: should a worker go on after all,
 * what it notes under the number that it knows changes nothing. It would take the job from the next worker, whose queue
 * then stays locked, and with the job what was added under its key since. First the jobs, then the queues: the note
 * that a job has ended locks them in this order too, so that the two cannot deadlock.
 */
export const FREED = `
  jobs as (
    update graphile_worker._private_jobs
    set id = default, locked_by = null, locked_at = null
    where locked_by in (select id from dead)
    returning id
  ),
  queues as (
    update graphile_worker._private_job_queues
    set locked_by = null, locked_at = null
    where locked_by in (select id from dead) and (select count(*) from jobs) >= 0
  )`
