import type { Log } from '@windlass/shared/log.ts'
import { pause } from '@windlass/shared/time.ts'
import type { Db } from '../db/client.ts'

/** A slice of a job takes seconds, and each of its statements half a minute at most. */
const DEAD_MS = 120_000
const LOOK_MS = 30_000

/**
 * Frees what workers have locked for long, for those whose lock (worker-locks.ts) tells nothing: they are of a version
 * before it, or were killed before they had it, or something in between keeps their session. graphile-worker itself
 * waits four hours. Should one be alive after all, its job is done twice, which each job bears.
 */
export async function freeDeadWorkers(deps: { db: Db; log: Log }, signal: AbortSignal): Promise<void> {
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
export async function freeOnce({ db, log }: { db: Db; log: Log }): Promise<string[]> {
  const rows = await db<{ worker: string }[]>`
    select distinct locked_by as worker
    from graphile_worker.jobs
    where locked_at < now() - ${DEAD_MS} * interval '1 millisecond'`
  const workers = rows.map((row) => row.worker)
  if (workers.length === 0) return []
  await freeWorkers(db, workers)
  log.warn('jobs.workers.dead', { workers })
  return workers
}

/** What these have locked is free for others. */
export async function freeWorkers(db: Db, workers: readonly string[]): Promise<void> {
  await db`select graphile_worker.force_unlock_workers(${workers}::text[])`
}
