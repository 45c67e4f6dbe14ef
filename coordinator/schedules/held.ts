/**
 * Ticks that wait for agents. `overlap` asks whether runs of a schedule have ended, and while the agent of one is out
 * of reach nobody knows: its end may lie there. So the tick waits until the agent was heard, or the run was taken from
 * it.
 */
import type { RunId } from '@windlass/shared/ids.ts'
import type { Log } from '@windlass/shared/log.ts'
import { probe } from '@windlass/shared/probe.ts'
import type { Db } from '../db/client.ts'
import type { Fragment } from '../db/newest.ts'
import { type DoubtDeps, doubtfulAfterMs, isRunInDoubt } from '../engine/commit/in-doubt.ts'
import { ENDED_AT_ONCE } from './end-runs.ts'
import type { ScheduleRow } from './row.ts'
import { MOST_HELD_MS } from './rules/held.ts'
import { hold } from './store-settle.ts'
import { type UnfinishedAsk, unfinishedAndInDoubt } from './store-unfinished.ts'

export interface HoldDeps extends DoubtDeps {
  db: Db
  log: Log
}

/** The unfinished runs by which ticks of these are decided. Those that wait are put off, and are not among `mine`. */
export async function withoutHeld(
  deps: HoldDeps,
  rows: readonly ScheduleRow[],
): Promise<{ mine: ScheduleRow[]; isAnyHeld: boolean; unfinished: ReadonlyMap<string, RunId[]> }> {
  const silentMs = doubtfulAfterMs(deps)
  const isInDoubt = (runId: Fragment) => isRunInDoubt(deps.db, runId, silentMs)
  const { unfinished, inDoubt } = await unfinishedAndInDoubt(deps.db, rows.flatMap(unfinishedFor), isInDoubt)
  const held = rows.filter((row) => waitsFor(row, unfinished.get(row.id) ?? [], inDoubt))
  if (held.length === 0) return { mine: [...rows], isAnyHeld: false, unfinished }
  const put = await hold(deps.db, held)
  for (const { id, heldSince } of held)
    if (heldSince === null && put.has(id)) deps.log('schedule.waitsForAgent', { schedule: id })
  probe('schedules.held', { schedules: [...put] })
  return { mine: rows.filter((row) => !held.includes(row)), isAnyHeld: put.size > 0, unfinished }
}

/** What has to be known of its unfinished runs; nothing when all its ticks fire. */
function unfinishedFor({ id, overlap, earlier }: ScheduleRow): UnfinishedAsk[] {
  const overlaps = [overlap, ...earlier.map((rule) => rule.overlap)]
  if (overlaps.includes('cancel')) return [{ id, most: ENDED_AT_ONCE }]
  return overlaps.includes('skip') ? [{ id, most: 1 }] : []
}

/** One that is unfinished for certain is in the way, whatever the others are; each of them would be cancelled. */
function waitsFor(row: ScheduleRow, unfinished: readonly RunId[], inDoubt: ReadonlySet<RunId>): boolean {
  const { overlap } = row.earlier[0] ?? row
  if (unfinished.length === 0 || overlap === 'allow' || hasWaited(row)) return false
  return overlap === 'skip' ? unfinished.every((id) => inDoubt.has(id)) : unfinished.some((id) => inDoubt.has(id))
}

/**
 * Pools may leave runs with silent agents for a day, and an agent may come and go without an end. What an earlier tick
 * waited is left behind by coordinators of the version before.
 */
function hasWaited({ heldSince, dueAt, nextAt, earlier, now }: ScheduleRow): boolean {
  if (heldSince === null || (earlier.length === 0 && nextAt !== null && heldSince < nextAt)) return false
  return Math.min(dueAt!, now) - heldSince >= MOST_HELD_MS
}
