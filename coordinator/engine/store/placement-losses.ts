import type { RunnerId } from '@windlass/shared/ids.ts'
import type { Loss } from '@windlass/shared/model/run.ts'
import type { Db } from '../../db/client.ts'

export async function explainUnknown(db: Db, runnerId: RunnerId, what: Loss['what']): Promise<void> {
  await db`
    with explained as (
      update run_losses
      set what = ${what}
      where runner_id = ${runnerId} and what = 'unknown'
      returning run_id, is_counted
    ),
    -- Counted as the agent being out of reach, as long as nothing else was known.
    recounted as (
      select run_id, count(*)::int as losses
      from explained
      where is_counted and ${what !== 'network'}
      group by run_id
    ),
    locked as materialized (
      select id
      from runs
      where id in (select run_id from recounted) and finished_at is null
      order by id
      for update
    )
    update runs r
    set crashes = r.crashes + c.losses, fences = greatest(0, r.fences - c.losses)
    from locked
    join recounted c on c.run_id = locked.id
    where r.id = locked.id`
}
