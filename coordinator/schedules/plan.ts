import type { RunId } from '@windlass/shared/ids.ts'
import type { PrepareDeps } from '../engine/commit/trigger.ts'
import type { NewRun } from '../engine/store/new-runs.ts'
import { askOf, type Refusal, startedBy } from './judged.ts'
import type { NewGap, ScheduleRow } from './row.ts'
import type { Firing } from './rules/late.ts'
import { settle, type Settled } from './rules/settle.ts'
import { whenOf, whyStopped } from './state.ts'
import type { LongerGap, SettledRow } from './store-settle.ts'

/** What is to be written of a schedule whose ticks are due. */
export interface Plan {
  row: ScheduleRow
  runs: NewRun[]
  /** Unfinished runs that are cancelled for them. */
  cancel: RunId[]
  gaps: NewGap[]
  /** The last gap of the schedule goes on. */
  longer: LongerGap | null
  settled: Omit<SettledRow, 'id' | 'gapId'>
}

/** Decides what becomes of the ticks that are due. Throws what may be otherwise in a moment. */
export async function planOf(
  deps: PrepareDeps,
  row: ScheduleRow,
  ask: { unfinished: readonly RunId[]; most: number },
): Promise<Plan> {
  const stoppedBecause = whyStopped(row)
  const nothing = { row, runs: [], cancel: [], gaps: [], longer: null }
  if (stoppedBecause !== null)
    return {
      ...nothing,
      settled: { settledAt: row.settledAt, nextAt: null, dueAt: null, isOver: false, stoppedBecause },
    }
  const nextAt = row.nextAt!
  const settled = settle({ ...row, when: whenOf(row), nextAt }, { ...ask, now: row.now })
  const started = await Promise.all(
    settled.fire.map(async (firing) => ({ firing, ...(await startedBy(deps, row, askFor(row, firing))) })),
  )
  const runs = started.flatMap((each) => ('run' in each ? [each.run] : []))
  const refused = started.flatMap((each) => ('refusal' in each ? [{ ...each.firing, ...each.refusal }] : []))
  const caughtUp = started.filter((each) => 'run' in each && each.firing.isCatchUp).length
  const gaps = [
    ...missedGap(row, settled, caughtUp),
    ...merged(row, [...refused, ...met(settled.skip, ask.unfinished, runs)]),
  ]
  return { row, runs, cancel: settled.cancel as RunId[], ...joined(row, gaps), settled: stateAfter(row, settled) }
}

function askFor(row: ScheduleRow, { at, lateMs, isCatchUp, delayMs }: Firing) {
  const tick = { how: isCatchUp ? ('caught-up' as const) : ('due' as const), at, lateMs: Math.round(lateMs) }
  return askOf(row, { kind: 'schedule', id: row.id, tick }, delayMs)
}

function stateAfter(row: ScheduleRow, { upTo, next }: Settled): Plan['settled'] {
  // What has become of it since is known already, but for the end of its time.
  const goesOn = row.restsBecause === null && row.endedAt === null
  const isOver = next === null && row.endedAt === null
  const due = goesOn && next !== null ? { nextAt: next.at, dueAt: next.dueAt } : { nextAt: null, dueAt: null }
  return { settledAt: Math.max(upTo, row.settledAt), ...due, isOver, stoppedBecause: null }
}

const gapOf = ({ id, orgId }: ScheduleRow) => ({ scheduleId: id, orgId, runId: null, caughtUp: 0, firedAt: null })

function missedGap(row: ScheduleRow, { missed }: Settled, caughtUp: number): NewGap[] {
  if (!missed) return []
  const { from, to, count } = missed
  const made = caughtUp === 0 ? 'none of them was caught up' : `of these ${caughtUp} fired late`
  const message = `Nobody was there to fire ${count === 1 ? 'the tick' : `${count} ticks`} in time; ${made}.`
  const firedAt = caughtUp === 0 ? null : row.now
  return [{ ...gapOf(row), outcome: 'missed', reason: 'MISSED', message, from, to, count, caughtUp, firedAt }]
}

type Unfired = { at: number; runId?: RunId } & Refusal

/** They meet the run that was unfinished before, or that of the first tick. */
function met(skip: readonly Firing[], unfinished: readonly RunId[], runs: readonly NewRun[]): Unfired[] {
  const runId = unfinished.at(-1) ?? runs[0]?.id
  return skip.map(({ at }) => ({
    at,
    reason: 'OVERLAP',
    message: runId ? `Its run ${runId} had not finished.` : 'Another tick was due as well.',
    ...(runId && { runId }),
  }))
}

/** Ticks in a row of which the same is to be said are one gap. */
function merged(row: ScheduleRow, ticks: readonly Unfired[]): NewGap[] {
  const gaps: NewGap[] = []
  for (const { at, reason, message, runId = null } of ticks) {
    const last = gaps.at(-1)
    if (last && isAlike(last, { outcome: 'skipped', reason, message, runId })) {
      last.to = at
      last.count++
    } else gaps.push({ ...gapOf(row), outcome: 'skipped', reason, message, runId, from: at, to: at, count: 1 })
  }
  return gaps
}

type Kind = Pick<NewGap, 'outcome' | 'reason' | 'message' | 'runId'>

const isAlike = (a: Kind, b: Kind) =>
  a.outcome === b.outcome && a.reason === b.reason && a.message === b.message && a.runId === b.runId

/** The first of them may only go on what the last gap of the schedule says. */
function joined(row: ScheduleRow, gaps: NewGap[]): Pick<Plan, 'gaps' | 'longer'> {
  const [first, ...rest] = gaps
  if (!first || first.outcome === 'missed' || row.gap === null || row.gapId === null || !isAlike(row.gap, first))
    return { gaps, longer: null }
  return { gaps: rest, longer: { id: row.gapId, to: first.to, count: first.count } }
}
