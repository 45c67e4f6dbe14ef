import type { Schedule, ScheduleGap } from '@windlass/shared/model/schedule.ts'
import type { GapRow, NewGap, ScheduleRow } from './row.ts'
import { nextTicks } from './rules/ticks.ts'
import { describe } from './rules/description.ts'
import { isActive, whenOf, whyStopped } from './state.ts'

const SHOWN = 5

/** The schedule as the API shows it. */
export function presentSchedule(row: ScheduleRow): Schedule {
  const when = whenOf(row)
  return {
    id: row.id,
    org: row.org,
    workflow: { id: row.workflowId, slug: row.workflowSlug },
    name: row.name,
    source: row.source,
    kind: row.kind,
    words: describe(when),
    ...(row.kind === 'cron' && { cron: row.cron!, timezone: row.timezone! }),
    ...(row.kind === 'rate' && { rateMs: row.rateMs!, anchorAt: row.anchorAt }),
    ...(row.kind === 'at' && { at: row.at! }),
    environment: row.environment,
    environmentId: row.environmentId,
    input: JSON.parse(row.input),
    jitterMs: row.jitterMs,
    catchUp: row.catchUp,
    catchUpWindowMs: row.catchUpWindowMs,
    overlap: row.overlap,
    enabled: row.enabled,
    pausedBy: row.pausedBy,
    createdAt: row.createdAt,
    createdBy: row.createdBy,
    updatedAt: row.updatedAt,
    nextAt: row.nextAt,
    nextTimes: nextTimesOf(row),
    endedAt: row.endedAt,
    lastRun: row.last,
  }
}

/** Behind a tick that is due by an earlier rule come those of the present one. */
function nextTimesOf(row: ScheduleRow): number[] {
  if (row.nextAt === null) return []
  // Another coordinator may know a zone that this one does not.
  if (whyStopped(row) !== null || !isActive(row)) return [row.nextAt]
  const after = Math.max(row.nextAt, row.earlier.at(-1)?.until ?? 0)
  return [row.nextAt, ...nextTicks(whenOf(row), after, SHOWN - 1)]
}

export function presentGap(row: GapRow | NewGap): ScheduleGap {
  const { outcome, reason, message, from, to, count, runId, caughtUp, firedAt } = row
  return { outcome, reason, message, from, to, count, runId, caughtUp, firedAt }
}
