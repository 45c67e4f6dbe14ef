import type { Log } from '@windlass/shared/log.ts'
import type { Db } from '../db/client.ts'
import type { Timers } from '../engine/commit/clock.ts'
import type { ScheduleRow } from './row.ts'
import { dueAtOf } from './rules/settle.ts'
import { rearmed, whenOf, whyStopped } from './state.ts'
import * as store from './store-set-back.ts'
import { findAll } from './store.ts'
import { settle } from './store-settle.ts'

const PAGE = 500

/**
 * Finds the next ticks anew, from now on, of schedules that were settled by a clock of the database which was ahead: up
 * to a time that is still to come. A tick that has its run fires no second one: see `withoutStarted`.
 */
export async function putSchedulesBack(deps: { db: Db; log: Log; scheduleTimers: Timers }): Promise<number> {
  let changed = 0
  for (let after: string | null = ''; after !== null;) {
    const ids = await putPageBack(deps.db, after)
    changed += ids.length
    after = ids.length < PAGE ? null : ids.at(-1)!
  }
  if (changed > 0) {
    deps.log.warn('schedules.setBack', { changed })
    deps.scheduleTimers.expect(0)
  }
  return changed
}

/** In one transaction, so that nobody waits for the locks of more than a page. */
function putPageBack(db: Db, after: string): Promise<string[]> {
  return db.begin(async (tx) => {
    const ids = await store.lockAhead(tx, after, PAGE)
    if (ids.length === 0) return ids
    await store.putAnchorsBack(tx, ids)
    const rows = await findAll(tx, ids)
    await settle(
      tx,
      rows.map(putBack).map((row) => ({ ...row, isOver: row.endedBecause === 'over' })),
    )
    return ids
  })
}

/** The same schedule as of now. What has ticked by now and is not settled stays, and is due when it was to be. */
export function putBack(row: ScheduleRow): ScheduleRow {
  const { now, nextAt } = row
  const earlier = row.earlier
    .filter(({ since }) => since < now)
    .map((rule) => ({ ...rule, until: Math.min(rule.until, now) }))
  const heldSince = row.heldSince === null ? null : Math.min(row.heldSince, now)
  const is = { ...row, earlier, heldSince, settledAt: Math.min(row.settledAt, now) }
  if (nextAt !== null && nextAt <= now) return { ...is, dueAt: Math.min(row.dueAt!, dueOf(is, nextAt)) }
  // An `at` that is over has fired, or is told.
  if (row.endedAt !== null) return is
  return rearmed({ ...is, earlier: [], heldSince: null, nextAt: null, dueAt: null }, now)
}

/** When a tick that has come is due: its jitter may not be over. */
function dueOf(row: ScheduleRow, nextAt: number): number {
  if (row.earlier.length > 0 || whyStopped(row) !== null) return row.now
  return Math.max(row.now, dueAtOf({ id: row.id, when: whenOf(row), jitterMs: row.jitterMs }, nextAt))
}
