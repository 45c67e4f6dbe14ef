import type { ScheduleId } from '@windlass/shared/ids.ts'
import type { Content, NewGap, ScheduleRow, ScheduleState } from './row.ts'
import { nextOf } from './rules/settle.ts'
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

/**
 * The same schedule with its next tick, from now on: after every change. A tick that is due already stays, and fires
 * whatever has become of the schedule.
 */
export function rearmed<S extends ContentAndState>(row: S, now: number): S {
  if (row.nextAt !== null && row.dueAt !== null && row.nextAt <= now) return row
  const endedBecause = row.endedBecause === 'not-in-descriptor' ? row.endedBecause : null
  const still = {
    ...row,
    nextAt: null,
    dueAt: null,
    stoppedBecause: whyStopped(row),
    endedBecause,
    endedAt: endedBecause && row.endedAt,
  }
  if (endedBecause !== null || still.stoppedBecause !== null) return still
  const next = nextOf({ id: row.id, when: whenOf(row), jitterMs: row.jitterMs }, Math.max(now, row.settledAt))
  if (next === null) return { ...still, endedAt: row.endedAt ?? now, endedBecause: 'over' }
  return row.restsBecause === null ? { ...still, nextAt: next.at, dueAt: next.dueAt } : still
}

const RESTS = {
  paused: { reason: 'PAUSED', message: 'The schedule was paused.' },
  'workflow-deleted': { reason: 'WORKFLOW_DELETED', message: 'The workflow was deleted.' },
} as const

/** What has ticked while it rests, up to now; null: nothing has. */
export function skippedMeanwhile(row: ScheduleRow, now: number): NewGap | null {
  if (row.restsSince === null || row.restsBecause === null || row.endedAt !== null || whyStopped(row)) return null
  const when = whenOf(row)
  const since = Math.max(row.restsSince, row.settledAt)
  const [to] = newestTicks(when, since, now, 1)
  if (to === undefined) return null
  return {
    scheduleId: row.id,
    orgId: row.orgId,
    outcome: 'skipped',
    ...RESTS[row.restsBecause],
    runId: null,
    from: nextTick(when, since)!,
    to,
    count: countTicks(when, since, now),
    caughtUp: 0,
    firedAt: null,
  }
}

/**
 * The schedule as it rests, or goes on, from now on; and what it has skipped meanwhile. `is` is what it is about to be,
 * `was` what it was.
 */
export function rested<S extends ContentAndState>(
  was: ScheduleRow,
  is: S,
  { now, isWorkflowDeleted }: { now: number; isWorkflowDeleted: boolean },
): { row: S; gap: NewGap | null } {
  const because = isWorkflowDeleted ? 'workflow-deleted' : is.enabled ? null : 'paused'
  if (because === was.restsBecause) return { row: is, gap: null }
  const gap = skippedMeanwhile(was, now)
  const settledAt = was.restsBecause === null ? is.settledAt : Math.max(is.settledAt, now)
  return { row: { ...is, restsBecause: because, restsSince: because && now, settledAt }, gap }
}
