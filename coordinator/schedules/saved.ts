import type { Tx } from '../db/client.ts'
import { mapInSlices } from '../slices.ts'
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
  const { row, gaps } = settledChange(was, is)
  const ids = await insertGaps(tx, gaps)
  await store.update(tx, { ...row, gapId: ids.at(-1) ?? row.gapId })
}

/** A workflow may have thousands: one by one they would take as many seconds. */
const AT_ONCE = 500

/** The same for schedules of which nobody has changed the content. */
export async function saveStates(tx: Tx, changes: readonly { was: ScheduleRow; is: ScheduleRow }[]): Promise<void> {
  for (let at = 0; at < changes.length; at += AT_ONCE) {
    const settled = await mapInSlices(changes.slice(at, at + AT_ONCE), ({ was, is }) => settledChange(was, is))
    const ids = await insertGaps(
      tx,
      settled.flatMap(({ gaps }) => gaps),
    )
    let n = 0
    const rows = settled.map(({ row, gaps }) => {
      n += gaps.length
      return { ...row, gapId: gaps.length > 0 ? ids[n - 1]! : row.gapId }
    })
    await store.updateStates(tx, rows)
  }
}

function settledChange(was: ScheduleRow, is: ScheduleRow) {
  const resting = rested(was, is, { now: was.now, isWorkflowDeleted: is.isWorkflowDeleted })
  const { row, gaps } = changed(was, resting.row)
  return { row, gaps: resting.gap ? [resting.gap, ...gaps] : gaps }
}
