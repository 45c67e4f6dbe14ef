import type { Log } from '@windlass/shared/log.ts'
import { CORRECTION_MS } from '../db/clock-difference.ts'
import type { Db } from '../db/client.ts'
import { inPasses, type Pass } from '../engine/commit/clock-set-back.ts'

/** Jobs that were added or put off by a clock of the database that was ahead are due after their delay from now on. */
export async function putJobsBack({ db, log }: { db: Db; log: Log }, signal?: AbortSignal): Promise<number> {
  const changed = await inPasses(() => putBack(db), signal)
  if (changed > 0) log.warn('jobs.setBack', { jobs: changed })
  return changed
}

/**
 * A job that has not begun was added, or put off, at `updated_at`; one that has failed waits for so long as
 * graphile-worker has it. Whoever adds several jobs locks them in his order, so those that are locked are passed over.
 */
async function putBack(db: Db): Promise<Pass> {
  const [pass] = await db<[Pass]>`
    with jobs as materialized (
      select id, run_at,
             case
               when attempts = 0 then greatest(run_at - updated_at, interval '0')
               else exp(least(attempts, 10)) * interval '1 second'
             end as delay
      from graphile_worker._private_jobs
    ),
    ahead as materialized (
      select id, delay from jobs where run_at > now() + delay + ${CORRECTION_MS}::float8 * interval '1 millisecond'
    ),
    free as materialized (
      select j.id
      from graphile_worker._private_jobs j
      where j.id in (select id from ahead)
      order by j.id
      for update skip locked
    ),
    moved as (
      update graphile_worker._private_jobs j
      set run_at = now() + a.delay, updated_at = now()
      from ahead a
      where j.id = a.id and j.id in (select id from free)
      returning j.id
    )
    select (select count(*) from moved)::int as moved,
           (select count(*) from ahead)::int - (select count(*) from free)::int as left`
  return pass
}
