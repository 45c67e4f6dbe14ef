import type { ScheduleId } from '@windlass/shared/ids.ts'
import { CORRECTION_MS } from '../db/clock-difference.ts'
import type { Tx } from '../db/client.ts'

/** What cannot be decided is put off by a minute at most. */
const PUT_OFF = '61 seconds'

/** Schedules of all orgs that were settled, or put off, by a clock that was ahead: locked, by their ids. */
export async function lockAhead(tx: Tx, after: string, limit: number): Promise<ScheduleId[]> {
  const rows = await tx<{ id: ScheduleId }[]>`
    select id
    from schedules
    where id > ${after} and deleted_at is null
      and (
        settled_at > now() + ${CORRECTION_MS}::float8 * interval '1 millisecond'
        or due_at > now() + ${PUT_OFF}::text::interval
          and (earlier <> '[]' or due_at > next_at + jitter_ms * interval '1 millisecond')
      )
    order by id
    limit ${limit}
    for update`
  return rows.map(({ id }) => id)
}

/**
 * The first tick of a rate comes one step behind its anchor. One that nobody has named is the time at which the
 * schedule was made: it goes back by whole steps.
 */
export async function putAnchorsBack(tx: Tx, ids: readonly ScheduleId[]): Promise<void> {
  await tx`
    update schedules
    set anchor_at = anchor_at
      - ceil(extract(epoch from anchor_at - now()) * 1000 / rate_ms) * rate_ms * interval '1 millisecond'
    where id = any(${[...ids]}) and kind = 'rate' and anchor_at > now() and anchor_at <= created_at`
}
