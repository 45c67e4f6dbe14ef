import type { Config } from '../../config.ts'
import { foundBy } from '../../db/by-key.ts'
import type { Db, Sql } from '../../db/client.ts'
import { isOwed, owing, type Payment, settled, touched } from './owed.ts'

/** Sweeps of a coordinator in which it may be late. */
export const SWEEPS_LATE = 3
/** Lower bound of the limit: with very frequent sweeps a busy machine is late by more than three of them. */
const LEAST_LIMIT_MS = 2000

/**
 * Leases are not judged when the last pulse of any coordinator is older than this: an outage of ours may have begun.
 */
export function pulseLimitMs({ sweepMs }: Pick<Config, 'sweepMs'>): number {
  return Math.max(LEAST_LIMIT_MS, SWEEPS_LATE * sweepMs)
}

export interface PulseTerms {
  /** What a coordinator knows of its own last pulse; undefined: it has started just now. */
  own: { atMs: number; gaps: number; sinceSentMs: number; sinceHeardMs: number } | undefined
  /** Two pulses that are further apart have a gap between them. */
  limitMs: number
  /** By how much the clock of the database may differ from ours between two pulses. */
  toleranceMs: number
  offerMs: number
  /** After a gap, and after a start, a lease lasts for at least so long. */
  floorMs: number
  /** Total time, gaps excluded, in which gaps and starts in a row give that floor. */
  amnestyMs: number
  /** This coordinator has yet to write what agents told before or in an outage. */
  isLate: boolean
}

export interface Pulse {
  /** Time of the pulse, by the clock of the database. */
  atMs: number
  gaps: number
  /** The end of the last gap, or the last start of a coordinator. */
  gapAtMs: number
  /** The end of the floor that leases were given then; null: they were given none. */
  graceUntilMs: number | null
  /** For how long nobody renewed leases, or by how much the clock was set forward. */
  forwardMs: number
  /** By how much the clock was set back: 0 or less. */
  backMs: number
  /** Leases and offers that were lengthened. */
  lengthened: number
  /** Those that somebody held: a later pulse lengthens them, and nobody judges them until then. */
  passedOver: number
  /** Until this pulse: when one that had yet to write such things said so last. */
  lateAtMs: number | null
  /** Number of its transaction. They are given in order, and begin anew where they were once around. */
  xid: number
  /** The last pulse of anybody before it. */
  before: { atMs: number; xid: number }
  /** When the server that wrote it was started. */
  serverAtMs: number
}

type Row = Omit<Pulse, 'before'> & { beforeAtMs: number; beforeXid: number }

/**
 * Says that leases can be renewed now, and lengthens them when they could not be: one statement, so that nobody sees
 * the one without the other. A coordinator cannot be stopped between its parts, and of two that come at once the second
 * finds what the first has done.
 *
 * A gap is too long a time between two pulses of whatever coordinators, or a clock of the database that does not agree
 * with that of ours between two pulses of our own, unless another coordinator has already made up for it (`gaps`). A
 * clock that was set forward looks like a gap, and is treated like one. One that was set back has made all leases
 * longer; those that were renewed before that, by a time which is still to come, are put back.
 *
 * It waits for no placement: one that is held would keep all leases of all orgs from being judged. See `owed.ts`.
 */
export async function pulse(db: Db, terms: PulseTerms): Promise<Pulse> {
  const { own, floorMs, amnestyMs } = terms
  const [{ beforeAtMs, beforeXid, ...row }] = await db<[Row]>`
    with ${gap(db, terms)},
    judged as materialized (
      select *,
             ${own === undefined} or forward_ms > 0 or back_ms < 0 as is_gap,
             case
               when is_one_more then series_at + (forward_ms + back_ms) * interval '1 millisecond'
               else now_is
             end as series
      from gap
    ),
    ends as materialized (
      select now_is, forward_ms, back_ms,
             case when now_is < series + ${ms(db, amnestyMs)} then now_is + ${ms(db, floorMs)} end as least_until
      from judged
      where is_gap
    ),
    ${longer(db, terms)},
    noted as (
      update pulse
      set
        at        = j.now_is,
        gaps      = pulse.gaps + (j.forward_ms > 0 or j.back_ms < 0)::int,
        gap_at    = case when j.is_gap then j.now_is else pulse.gap_at end,
        series_at = case when j.is_gap then j.series else pulse.series_at end,
        late_at   = case when ${terms.isLate} then j.now_is else pulse.late_at end
      from judged j
      returning pulse.at, pulse.gaps, pulse.gap_at, pulse.series_at, pulse.xmin
    )
    select ${epochMs(db, db`n.at`)} as at_ms, n.gaps, j.forward_ms, j.back_ms,
           ${epochMs(db, db`n.gap_at`)} as gap_at_ms, ${epochMs(db, db`j.late_at`)} as late_at_ms,
           case
             when n.gap_at < n.series_at + ${ms(db, amnestyMs)} then ${epochMs(db, db`n.gap_at + ${ms(db, floorMs)}`)}
           end as grace_until_ms,
           (select count(*)::int from longer)
             + (select count(*)::int from settled where is_lengthened) as lengthened,
           (select count(*)::int from owing) as passed_over,
           n.xmin::text::float8 as xid, j.xid as before_xid, ${epochMs(db, db`j.at`)} as before_at_ms,
           ${epochMs(db, db`pg_postmaster_start_time()`)} as server_at_ms
    from noted n, judged j`
  return { ...row, before: { atMs: beforeAtMs, xid: beforeXid } }
}

const ms = (sql: Sql, length: number) => sql`${length}::float8 * interval '1 millisecond'`

type Part = ReturnType<typeof ms>

const epochMs = (sql: Sql, time: Part) => sql`(extract(epoch from ${time}) * 1000)::float8`

function gap(db: Db, { own, limitMs, toleranceMs, floorMs }: PulseTerms): Part {
  const isOwn = db`gaps = ${own?.gaps ?? -1}::int`
  const ownMs = db`(extract(epoch from now_is) * 1000)::float8 - ${own?.atMs ?? 0}::float8`
  return db`
    locked as materialized (
      select at, gaps, gap_at, series_at, late_at, xmin::text::float8 as xid
      from pulse
      -- It has one row. The planner, which takes it for large until there are statistics, is to know that.
      limit 1
      for update
    ),
    -- Once the row is ours, or the time would be that of before the wait for it.
    clock as materialized (select *, clock_timestamp() as now_is from locked),
    measured as materialized (
      select *,
             (extract(epoch from now_is - at) * 1000)::float8 as since_ms,
             case when ${isOwn} then ${ownMs} - ${own?.sinceSentMs ?? 0}::float8 else 0 end as ahead_ms,
             case when ${isOwn} then ${ownMs} - ${own?.sinceHeardMs ?? 0}::float8 else 0 end as behind_ms
      from clock
    ),
    -- A pulse that waited for its connection looks like a jump as well. A clock that has jumped since the last pulse of
    -- anybody is ahead of that one too; what jumped before was noted there, unless that coordinator had just started.
    told as materialized (
      select *,
             case
               when (extract(epoch from gap_at) * 1000)::float8 > ${own?.atMs ?? 0}::float8 then ahead_ms
               else least(ahead_ms, since_ms)
             end as jump_ms
      from measured
    ),
    gap as materialized (
      select *,
             case
               when since_ms > ${limitMs}::float8 then greatest(since_ms, jump_ms)
               when jump_ms > ${toleranceMs}::float8 then jump_ms
               else 0
             end as forward_ms,
             case
               when least(since_ms, behind_ms) < -${toleranceMs}::float8 then least(since_ms, behind_ms)
               else 0
             end as back_ms,
             -- Unless agents had time to come back since the last one.
             (at < gap_at + ${ms(db, floorMs)}) is true as is_one_more
      from told
    )`
}

function longer(db: Db, { offerMs }: PulseTerms): Part {
  const end = endOf(db, offerMs)
  const columns = (nowIs: Part, { newEnd, lengthenedMs, renewedAt }: Payment) => {
    const longerByMs = lengthenedMs(db`greatest(0, (extract(epoch from ${newEnd(end)} - (${end})) * 1000)::bigint)`)
    return db`
      lease_expires_at = ${newEnd(db`p.lease_expires_at`)},
      lengthened_ms    = nullif(coalesce(p.lengthened_ms, 0) + ${longerByMs}, 0),
      lengthened_at    = case when ${longerByMs} > 0 then ${nowIs} else p.lengthened_at end,
      offered_at       = ${notAfter(db, nowIs, db`p.offered_at`)},
      accepted_at      = ${notAfter(db, nowIs, db`p.accepted_at`)},
      renewed_at       = greatest(${notAfter(db, nowIs, db`p.renewed_at`)}, ${renewedAt})`
  }
  const ofGap: Payment = { newEnd: (of) => newEnd(db, of), lengthenedMs: (movedMs) => movedMs, renewedAt: db`null` }
  return db`
    wanted as materialized (
      select p.run_id, p.epoch, ${touched(db)} as touched_at
      from ends e
      join placements p on e.forward_ms > 0 or e.back_ms < 0 or e.least_until > ${end}
    ),
    held as materialized (
      select p.run_id
      from wanted w
      join placements p on ${foundBy(db, db`p.run_id`, db`w.run_id`)}
      where not ${isOwed(db)}
      order by p.run_id
      for update of p skip locked
    ),
    longer as (
      update placements p
      set ${columns(db`e.now_is`, ofGap)}
      from ends e, held
      where p.run_id = held.run_id
      returning p.run_id
    ),
    ${owing(db)},
    ${settled(db, (payment) => columns(db`j.now_is`, payment))}`
}

/** End of placement `p`: of its lease or its offer. */
const endOf = (sql: Sql, offerMs: number): Part => sql`
  case
    when p.accepted_at is not null then p.lease_expires_at
    else p.offered_at + (${offerMs}::float8 + coalesce(p.lengthened_ms, 0)) * interval '1 millisecond'
  end`

/** The end of a lease or offer, after gap `e`. */
const newEnd = (sql: Sql, end: Part): Part => sql`
  greatest(
    ${end} + interval '1 millisecond' * (
      e.forward_ms + case when coalesce(p.renewed_at, p.offered_at) > e.now_is then e.back_ms else 0 end
    ),
    e.least_until
  )`

/** `least` ignores null and would return the other time. */
const notAfter = (sql: Sql, nowIs: Part, time: Part): Part =>
  sql`case when ${time} > ${nowIs} then ${nowIs} else ${time} end`

/**
 * A lease is judged only while somebody can renew it. `now()` is the beginning of the transaction: what was over then
 * stays over.
 */
export const isFresh = (sql: Sql, limitMs: number): Part => sql`
  exists (select from pulse where at > now() - ${ms(sql, limitMs)})`
