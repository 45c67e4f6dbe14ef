import { CORRECTION_MS } from '../db/clock-difference.ts'
import type { Db } from '../db/client.ts'

/**
 * Times of what has been are now at the latest, and none is in quarantine for longer than `quarantineMs`. Deadlines of
 * drains stay: somebody has chosen them. Those that others have locked are passed over.
 */
export async function putBack(db: Db, quarantineMs: number): Promise<{ moved: number; left: number }> {
  const [pass] = await db<[{ moved: number; left: number }]>`
    with ahead as materialized (
      select runner_id
      from runner_intake
      where since > now() + ${CORRECTION_MS} * interval '1 millisecond'
         or quarantined_until > now() + ${quarantineMs + CORRECTION_MS} * interval '1 millisecond'
         or now() + ${CORRECTION_MS} * interval '1 millisecond' < any(failures)
    ),
    free as materialized (
      select runner_id
      from runner_intake
      where runner_id in (select runner_id from ahead)
      order by runner_id
      for update skip locked
    ),
    moved as (
      update runner_intake
      set
        since             = least(since, now()),
        failures          = array(select least(at, now()) from unnest(failures) at),
        quarantined_at    = least(quarantined_at, now()),
        quarantined_until = least(quarantined_until, now() + ${quarantineMs} * interval '1 millisecond')
      where runner_id in (select runner_id from free)
      returning runner_id
    )
    select (select count(*) from moved)::int as moved,
           (select count(*) from ahead)::int - (select count(*) from free)::int as left`
  return pass
}
