/**
 * What pulses and heartbeats owe to placements that somebody holds. A pulse that waited for one of them would not be
 * noted, and nobody would judge any lease of any org for as long as that is held; a heartbeat that did would let all
 * other leases of its agent run out. So they pass over them and note by how much each is to be lengthened, a pulse in
 * the statement that notes it, and until when a heartbeat has renewed it. What holds then, whoever is killed when:
 *
 * - A placement that is owed something is not judged. Who sees a pulse sees what it owes.
 * - The sum of the gaps is owed, and the latest of the ends that they gave, moved on by the gaps after it. Each gap
 *   adds to it, whether the placement is free by then or not, so that none counts twice.
 * - The first pulse without a gap that finds the placement free lengthens it and forgets what was owed, at once.
 * - A renewal after the gap pays for it, as its lease begins there. One that began before the gap, and was written by
 *   the one that held the placement, does not. An offer is paid by its acceptance alone.
 * - A heartbeat that is noted here is such a renewal: it takes the place of what gaps before it owed, ends no earlier,
 *   and gaps after it move it on. Its agent is told that the lease is renewed.
 * - What was renewed by a clock that was ahead lasts for its length from the moment on at which it is lengthened.
 * - Another placement of the same run, which has another epoch, is owed nothing. What is owed to a later one stays.
 *
 * Pulses hold the one row of `pulse`. One that waited for that row sees the tables as they were before, and heartbeats
 * come meanwhile: it forgets no more than what was owed before it began, and before the pulse that came first.
 */
import { foundBy, onlyFilters } from '../../db/by-key.ts'
import type { Sql } from '../../db/client.ts'

type Part = ReturnType<typeof isOwed>

/** Placement `p` could not be lengthened yet. Looked up by its key for those alone of which the rest is true. */
export const isOwed = (sql: Sql) => sql`
  exists (select from lengthenings_owed o where o.run_id = p.run_id and o.epoch = p.epoch offset 0)`

/** When placement `p` was offered, taken or renewed: what its end counts from. */
export const touched = (sql: Sql): Part => sql`
  case when p.accepted_at is null then p.offered_at else coalesce(p.renewed_at, p.accepted_at) end`

/** What is owed as `o` is paid by a renewal at `touchedAt`, which was seen at `at`. */
const isPaid = (sql: Sql, touchedAt: Part, at: Part): Part => sql`
  (${touchedAt} is distinct from o.touched_at and ${touchedAt} > o.gap_at and ${touchedAt} <= ${at})`

/** Notes what gap `ends` owes to what is `wanted` and not `held`. */
export function owing(sql: Sql): Part {
  const isOwedStill = sql`
    o.epoch = excluded.epoch and not ${isPaid(sql, sql`excluded.touched_at`, sql`excluded.gap_at`)}`
  return sql`
    owing as (
      insert into lengthenings_owed as o (run_id, epoch, gap_at, touched_at, forward_ms, least_until)
      select w.run_id, w.epoch, e.now_is, w.touched_at, e.forward_ms, e.least_until
      from ends e
      cross join wanted w
      -- Hashed, where a plan for NOT EXISTS that is made on an empty table compares all with all.
      where w.run_id not in (select run_id from held)
      -- As heartbeats do.
      order by w.run_id
      on conflict (run_id) do update
      set
        epoch       = excluded.epoch,
        gap_at      = excluded.gap_at,
        touched_at  = excluded.touched_at,
        forward_ms  = excluded.forward_ms + case when ${isOwedStill} then o.forward_ms else 0 end,
        -- It ignores null.
        least_until = greatest(
          excluded.least_until,
          case
            when not ${isOwedStill} then null
            -- By a clock that was ahead.
            when o.renewed_at > excluded.gap_at then o.least_until + (excluded.gap_at - o.renewed_at)
            else o.least_until + excluded.forward_ms * interval '1 millisecond'
          end
        ),
        renewed_at  = case
          when ${isOwedStill} and o.renewed_at is not null then least(o.renewed_at, excluded.gap_at)
        end
      where o.epoch <= excluded.epoch
      returning run_id
    )`
}

/** Notes that heartbeats renewed what is `theirs`, which somebody holds. */
export function renewalsOwed(sql: Sql): Part {
  // A lease begins when the row is written.
  const end = sql`clock_timestamp() + (excluded.least_until - excluded.gap_at)`
  return sql`
    renewals_owed as (
      insert into lengthenings_owed as o (run_id, epoch, gap_at, touched_at, forward_ms, least_until, renewed_at)
      select t.run_id, t.epoch, clock.is_now, t.touched_at, 0,
             clock.is_now + t.lease_ms * interval '1 millisecond', clock.is_now
      from theirs t
      -- Once this has begun to read: what it sees of placements was there before.
      cross join (select clock_timestamp() as is_now offset 0) clock
      where t.is_accepted
      -- As pulses do.
      order by t.run_id
      on conflict (run_id) do update
      set
        epoch       = excluded.epoch,
        gap_at      = clock_timestamp(),
        touched_at  = excluded.touched_at,
        forward_ms  = 0,
        least_until = case when o.epoch = excluded.epoch then greatest(o.least_until, ${end}) else ${end} end,
        renewed_at  = clock_timestamp()
      where o.epoch <= excluded.epoch
    )`
}

/** How what is owed as `o` is paid. */
export interface Payment {
  /** Of what ended at `end`. */
  newEnd: (end: Part) => Part
  /** What is told as a lengthening, in milliseconds, if the end was moved on by `movedMs`: no renewal. */
  lengthenedMs: (movedMs: Part) => Part
  renewedAt: Part
}

/** Pays what can be paid, in pulse `j` without a gap. `lengthen` answers the columns of `p`. */
export function settled(sql: Sql, lengthen: (payment: Payment) => Part): Part {
  const at = touched(sql)
  const newEnd = (end: Part) => sql`
    greatest(
      ${end} + case
        when ${at} > j.now_is then j.now_is - ${at}
        else o.forward_ms * interval '1 millisecond'
      end,
      -- By a clock that was ahead, which the pulse that found it set back did not see yet.
      o.least_until + least(j.now_is - o.renewed_at, interval '0')
    )`
  const renewedAt = sql`case when o.renewed_at > j.now_is then j.now_is else o.renewed_at end`
  const lengthenedMs = (movedMs: Part) => sql`case when o.renewed_at is null then ${movedMs} else o.forward_ms end`
  return sql`
    owed as materialized (
      select o.*
      from lengthenings_owed o
      where not exists (select from ends)
      order by o.run_id
      for update
    ),
    free as materialized (
      select o.*
      from owed o
      join placements p on ${foundBy(sql, sql`p.run_id`, sql`o.run_id`)}
      where ${onlyFilters(sql, sql`p.epoch = o.epoch`)}
      order by p.run_id
      for update of p skip locked
    ),
    settled as (
      update placements p
      set ${lengthen({ newEnd, lengthenedMs, renewedAt })}
      from judged j
      cross join free o
      where ${foundBy(sql, sql`p.run_id`, sql`o.run_id`)} and not ${isPaid(sql, at, sql`j.now_is`)}
      returning p.run_id, o.renewed_at is null or o.forward_ms > 0 as is_lengthened
    ),
    -- Paid, or of a placement that is gone.
    void as (
      select o.run_id
      from judged j
      cross join owed o
      where o.run_id not in (select run_id from free)
        -- Later ones cannot be of now: the clock was ahead.
        and (o.gap_at < least(j.at, now()) or o.gap_at > j.now_is + interval '1 minute')
        and not exists (
          select from placements p
          where p.run_id = o.run_id and p.epoch = o.epoch and not ${isPaid(sql, at, sql`j.now_is`)}
          offset 0
        )
    ),
    forgotten as (
      delete from lengthenings_owed l
      using (select run_id from free union all select run_id from void) o
      where ${foundBy(sql, sql`l.run_id`, sql`o.run_id`)}
    )`
}
