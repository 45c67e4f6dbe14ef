import type { Tx } from '../db/client.ts'
import type { Content, ScheduleRow, ScheduleState } from './row.ts'
import { changed, rested } from './state.ts'
import * as store from './store.ts'
import { insertGaps } from './store-settle.ts'

/** Nothing has ticked yet. */
export const NEW: Omit<ScheduleState, 'settledAt'> = {
  nextAt: null,
  dueAt: null,
  restsSince: null,
  restsBecause: null,
  stoppedBecause: null,
  endedAt: null,
  endedBecause: null,
  gapId: null,
  earlier: [],
}

/** What whoever has made it says of it, and nothing else. */
export function contentOf(row: Content): Content {
  const { name, kind, cron, timezone, rateMs, anchorAt, at, environment, environmentId, input } = row
  const { jitterMs, catchUp, catchUpWindowMs, overlap, enabled } = row
  const when = { kind, cron, timezone, rateMs, anchorAt, at }
  const rules = { jitterMs, catchUp, catchUpWindowMs, overlap, enabled }
  return { name, ...when, environment, environmentId, input, ...rules }
}

/** Writes what a schedule has become, with its next tick and what it has skipped. */
export async function save(tx: Tx, was: ScheduleRow, is: ScheduleRow): Promise<void> {
  const { now } = was
  const resting = rested(was, is, { now, isWorkflowDeleted: is.isWorkflowDeleted })
  const { row, gap } = changed(was, resting.row)
  const ids = await insertGaps(
    tx,
    [resting.gap, gap].filter((each) => each !== null),
  )
  await store.update(tx, { ...row, gapId: ids.at(-1) ?? row.gapId })
}
