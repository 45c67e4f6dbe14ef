import type { Log } from '@windlass/shared/log.ts'
import type { Db } from '../db/client.ts'

/** Long enough for an operator to look at them. */
const RETENTION_DAYS = 7

/**
 * Takes away jobs that have failed at every attempt, which graphile-worker keeps for ever: after an outage at the wrong
 * moment some stay that have been done under another number.
 */
export async function cleanGivenUp({ db, log }: { db: Db; log: Log }): Promise<void> {
  const jobs = await db<{ job: string; key: string | null; error: string | null }[]>`
    with given_up as materialized (
      select id, task_identifier as job, key, last_error as error
      from graphile_worker.jobs
      where attempts >= max_attempts
        and locked_at is null
        and updated_at < now() - ${RETENTION_DAYS} * interval '1 day'
    ),
    removed as (
      select (graphile_worker.complete_jobs(array(select id from given_up))).id
    )
    select g.job, g.key, g.error
    from given_up g
    join removed r using (id)`
  for (const job of jobs) log.warn('jobs.given.up', job)
}
