import type { ScheduleId } from '@windlass/shared/ids.ts'
import { isDeepStrictEqual } from 'node:util'
import type { Content, EarlierRule, NewGap, Rule, ScheduleRow, ScheduleState } from './row.ts'
import { dueAtOf, nextOf } from './rules/settle.ts'
import { countTicks, newestTicks, nextTick, type When } from './rules/ticks.ts'
import { isKnownZone } from './rules/zones.ts'

export function whenOf(row: Pick<Content, 'kind' | 'cron' | 'timezone' | 'rateMs' | 'anchorAt' | 'at'>): When {
  if (row.kind === 'cron') return { kind: 'cron', cron: row.cron!, timezone: row.timezone! }
  if (row.kind === 'rate') return { kind: 'rate', rateMs: row.rateMs!, anchorAt: row.anchorAt }
  return { kind: 'at', at: row.at! }
}

/** Why nobody can tell when it ticks; null: this process can. */
export function whyStopped({ timezone }: Pick<Content, 'timezone'>): string | null {
  if (timezone === null || isKnownZone(timezone)) return null
  return `This coordinator has no rules of the time zone \`${timezone}\` (zone data ${process.versions.tz}).`
}

export type ContentAndState = Content & ScheduleState & { id: ScheduleId }

function ruleOf(row: Rule): Rule {
  const { kind, cron, timezone, rateMs, anchorAt, at, jitterMs, catchUp, catchUpWindowMs, overlap } = row
  return { kind, cron, timezone, rateMs, anchorAt, at, jitterMs, catchUp, catchUpWindowMs, overlap }
}

/** New ticks come. */
export const isActive = (row: ScheduleState) => row.restsBecause === null && row.endedAt === null

/** A tick has come, and is not settled. */
const hasTicked = (row: ScheduleState, now: number) =>
  row.earlier.length > 0 || (row.nextAt !== null && row.nextAt <= now)

/** The same schedule with its next tick, from now on. One that has come already stays. */
export function rearmed<S extends ContentAndState>(row: S, now: number): S {
  if (hasTicked(row, now)) return row
  const endedBecause = row.endedBecause === 'not-in-descriptor' ? row.endedBecause : null
  const stoppedBecause = whyStopped(row)
  const still = {
    ...row,
    nextAt: null,
    dueAt: null,
    stoppedBecause,
    // What ticks from now on is counted once somebody can.
    settledAt: stoppedBecause !== null && row.stoppedBecause === null ? Math.max(row.settledAt, now) : row.settledAt,
    endedBecause,
    endedAt: endedBecause && row.endedAt,
  }
  if (endedBecause !== null || stoppedBecause !== null) return still
  const next = nextOf({ id: row.id, when: whenOf(row), jitterMs: row.jitterMs }, Math.max(now, row.settledAt))
  if (next === null) return { ...still, endedAt: row.endedAt ?? now, endedBecause: 'over' }
  return row.restsBecause === null ? { ...still, nextAt: next.at, dueAt: next.dueAt } : still
}

type Named = ContentAndState & Pick<ScheduleRow, 'orgId' | 'source'>

/** An `at` that is named just now and has passed. Null: what is named ticks from now on. */
function passedAt(is: Named, was: Pick<Content, 'at'> | null, now: number): { at: number; gap: NewGap | null } | null {
  const { at } = is
  if (at === null || at === was?.at || at > now) return null
  const of = { from: at, to: at }
  // A version may be deployed long after, and again.
  if (is.source === 'descriptor') return { at, gap: { ...gapOf(is, DEPLOYED_LATE), ...of, outcome: 'missed' } }
  if (is.restsBecause !== null) return { at, gap: { ...gapOf(is, RESTS[is.restsBecause]), ...of } }
  // It was accepted, and has passed while the request was under way: it fires, late.
  return { at, gap: null }
}

/**
 * A schedule that is made, or changed, with its next tick: from now on, but for an `at` that was accepted and has
 * passed. That fires, or is told.
 */
export function armed<S extends Named>(
  is: S,
  { was, now }: { was: Pick<Content, 'at'> | null; now: number },
): { row: S; gaps: NewGap[] } {
  const passed = passedAt(is, was, now)
  if (passed === null || passed.gap) return { row: rearmed(is, now), gaps: passed?.gap ? [passed.gap] : [] }
  const from = passed.at - 1
  return { row: rearmed({ ...is, settledAt: from }, from), gaps: [] }
}

/**
 * The same schedule after a change, with its next tick. What has ticked before is settled by the rule of then, at once:
 * its jitter ends with the change. Only when the schedule rests a tick whose jitter is not over is skipped, and told;
 * so is one that waits for an agent.
 */
export function changed<S extends Named>(was: ScheduleRow, is: S): { row: S; gaps: NewGap[] } {
  const { now } = was
  if (!hasTicked(was, now)) return armed(is, { was, now })
  if (isActive(was) === isActive(is) && isDeepStrictEqual(ruleOf(was), ruleOf(is))) return { row: is, gaps: [] }
  if (is.restsBecause !== null && (isInJitter(was) || isHeld(was))) {
    const skipped = { ...gapOf(was, RESTS[is.restsBecause]), ...comeBy(was, now) }
    const row = { ...is, nextAt: null, dueAt: null, settledAt: Math.max(is.settledAt, now) }
    const next = armed(row, { was, now })
    return { row: next.row, gaps: [skipped, ...next.gaps] }
  }
  const passed = passedAt(is, was, now)
  const earlier = passed && !passed.gap ? [...withRule(was), onlyPassed(is, passed.at, now)] : withRule(was)
  return { row: { ...is, earlier, dueAt: Math.min(was.dueAt!, now) }, gaps: passed?.gap ? [passed.gap] : [] }
}

/** It is settled behind what has ticked before, though it may lie before that. */
const onlyPassed = (is: Rule, at: number, now: number): EarlierRule => ({ ...ruleOf(is), since: at - 1, until: now })

/** Its tick has come, and does not fire yet. */
function isInJitter(row: ScheduleRow): boolean {
  if (row.earlier.length > 0 || row.jitterMs === 0 || whyStopped(row) !== null) return false
  return dueAtOf({ id: row.id, when: whenOf(row), jitterMs: row.jitterMs }, row.nextAt!) > row.now
}

/** Its tick waits for an agent, and nothing by an earlier rule does. */
const isHeld = (row: ScheduleRow) =>
  row.heldSince !== null && row.earlier.length === 0 && isActive(row) && whyStopped(row) === null

/** Its ticks that have come by now. */
function comeBy(row: ScheduleRow, now: number): Pick<NewGap, 'from' | 'to' | 'count'> {
  const [from, when] = [row.nextAt!, whenOf(row)]
  return { from, to: newestTicks(when, from, now, 1)[0] ?? from, count: 1 + countTicks(when, from, now) }
}

/** What is to be settled by earlier rules, with the one that ends now, if it has ticks that are not settled. */
function withRule(row: ScheduleRow): readonly EarlierRule[] {
  const last = row.earlier.at(-1)
  // Since it went on: a pause may lie between.
  const since = Math.max(row.settledAt, last?.until ?? 0)
  const hasTicks = isActive(row) && (last === undefined || isTicking(row, since, row.now))
  return hasTicks ? [...row.earlier, { ...ruleOf(row), since, until: row.now }] : row.earlier
}

const isTicking = (rule: Rule, after: number, until: number) =>
  whyStopped(rule) === null && (nextTick(whenOf(rule), after) ?? Infinity) <= until

/** How a schedule goes on after what was due is settled up to `settledAt`: with the next of `earlier`, or by itself. */
export function following(row: ScheduleRow, earlier: readonly EarlierRule[], settledAt: number) {
  let after = settledAt
  for (const [i, rule] of earlier.entries()) {
    if (isTicking(rule, rule.since, rule.until)) {
      return {
        settledAt: Math.max(after, row.settledAt),
        nextAt: nextTick(whenOf(rule), rule.since),
        dueAt: row.now,
        heldSince: row.heldSince,
        earlier: earlier.slice(i),
        isOver: false,
        stoppedBecause: null,
      }
    }
    after = Math.max(after, rule.until)
  }
  // It may have gone on after a pause since.
  after = Math.max(after, row.settledAt)
  const rest = { earlier: [], isOver: false, stoppedBecause: null }
  const none = { settledAt: after, nextAt: null, dueAt: null, heldSince: null, ...rest }
  const stoppedBecause = whyStopped(row)
  if (row.endedAt !== null || stoppedBecause !== null) return { ...none, stoppedBecause }
  const next = nextOf({ id: row.id, when: whenOf(row), jitterMs: row.jitterMs }, after)
  if (next === null) return { ...none, isOver: true }
  if (row.restsBecause !== null) return none
  // It has come while those of earlier rules waited for an agent.
  if (row.heldSince !== null && next.dueAt <= row.now)
    return { ...none, nextAt: next.at, dueAt: row.now, heldSince: row.heldSince }
  return { ...none, nextAt: next.at, dueAt: next.dueAt }
}

const gapOf = (
  { id, orgId }: Pick<ScheduleRow, 'id' | 'orgId'>,
  { reason, message }: Pick<NewGap, 'reason' | 'message'>,
) => ({
  scheduleId: id,
  orgId,
  outcome: 'skipped' as const,
  reason,
  message,
  runId: null,
  count: 1,
  caughtUp: 0,
  firedAt: null,
})

const RESTS = {
  paused: { reason: 'PAUSED', message: 'The schedule was paused.' },
  'workflow-deleted': { reason: 'WORKFLOW_DELETED', message: 'The workflow was deleted.' },
  'zone-unknown': { reason: 'ZONE_UNKNOWN', message: 'The coordinators did not know its time zone.' },
} as const

const DEPLOYED_LATE = {
  reason: 'MISSED',
  message: 'It had passed when the descriptor that names it was deployed.',
} as const

/** What has ticked while it rests or is stopped, up to now; null: nothing has. */
export function skippedMeanwhile(row: ScheduleRow, now: number): NewGap | null {
  const because = row.restsBecause ?? (row.stoppedBecause === null ? null : 'zone-unknown')
  if (because === null || row.endedAt !== null) return null
  const isKnown = whyStopped(row) === null
  const when = whenOf(isKnown ? row : { ...row, timezone: 'UTC' })
  const since = Math.max(row.restsSince ?? 0, row.settledAt)
  const [to] = newestTicks(when, since, now, 1)
  if (to === undefined) return null
  const from = nextTick(when, since)!
  const { reason, message } = RESTS[because]
  const rest = { reason, message: isKnown ? message : `${message} The times are counted as if it were UTC.` }
  return { ...gapOf(row, rest), from, to, count: countTicks(when, since, now) }
}

/**
 * The schedule as it rests, or goes on, from now on; and what it has skipped meanwhile. `is` is what it is about to be,
 * `was` what it was. What it skips is counted when somebody asks, by its present rule: where that ends, it is settled.
 */
export function rested<S extends ContentAndState>(
  was: ScheduleRow,
  is: S,
  { now, isWorkflowDeleted }: { now: number; isWorkflowDeleted: boolean },
): { row: S; gap: NewGap | null } {
  const because = isWorkflowDeleted ? 'workflow-deleted' : is.enabled ? null : 'paused'
  const goesOn = because === null && was.stoppedBecause !== null && whyStopped(is) === null
  const ticked = was.restsBecause === null && was.stoppedBecause === null
  const isSame = because === was.restsBecause
  if (isSame && !goesOn && (ticked || !endsTimes(was, is))) return { row: is, gap: null }
  const gap = skippedMeanwhile(was, now)
  const settledAt = ticked ? is.settledAt : Math.max(is.settledAt, now)
  const restsSince = isSame ? was.restsSince : because && now
  return { row: { ...is, restsBecause: because, restsSince, settledAt }, gap }
}

/** The times at which it ticks, or would, are others from now on, or none. */
const endsTimes = (was: ScheduleRow, is: ContentAndState) =>
  !isDeepStrictEqual(whenOf(was), whenOf(is)) || (was.endedAt === null && is.endedAt !== null)
