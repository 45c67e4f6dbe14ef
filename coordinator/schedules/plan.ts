import type { RunId } from '@windlass/shared/ids.ts'
import type { PrepareDeps } from '../engine/commit/trigger.ts'
import type { NewRun } from '../engine/store/new-runs.ts'
import { askOf, type Refusal, startedBy, startedByEach } from './judged.ts'
import type { NewGap, ScheduleRow } from './row.ts'
import { heldTimeOf } from './rules/held.ts'
import type { Firing, Missed } from './rules/late.ts'
import { settle, type Settled } from './rules/settle.ts'
import { countTicks, newestTicks, nextTick, type When } from './rules/ticks.ts'
import { following, whenOf, whyStopped } from './state.ts'
import type { LongerGap, SettledRow } from './store-settle.ts'

/** What is known besides the schedule when its ticks are decided. */
export interface PlanAsk {
  /** Unfinished runs of the schedule, the oldest first. */
  unfinished: readonly RunId[]
  /** So many ticks are caught up. */
  most: number
  /** Ticks that have their run already. */
  started?: readonly number[]
}

/** What is to be written of a schedule whose ticks are due. */
export interface Plan {
  row: ScheduleRow
  ask: PlanAsk
  runs: NewRun[]
  /** Unfinished runs that are cancelled for them. */
  cancel: RunId[]
  gaps: NewGap[]
  /** The last gap of the schedule goes on. */
  longer: LongerGap | null
  settled: Omit<SettledRow, 'id' | 'gapId'>
}

/** Decides what becomes of the ticks that are due. Throws what may be otherwise in a moment. */
export async function planOf(deps: PrepareDeps, row: ScheduleRow, ask: PlanAsk): Promise<Plan> {
  const [first, ...rest] = row.earlier
  const rule = first ?? row
  const nextAt = row.nextAt!
  if (whyStopped(rule) !== null) {
    const settled = following(row, rest, first?.until ?? nextAt - 1)
    return { row, ask, runs: [], cancel: [], gaps: [], longer: null, settled }
  }
  const ticking = { ...rule, id: row.id, when: whenOf(rule), nextAt }
  const settled = settle(ticking, { ...ask, now: row.now, until: first?.until, held: heldTimeOf(row) })
  const fire = settled.fire.filter(({ at }) => !ask.started?.includes(at))
  const asks = fire.map((firing) => askFor(row, firing))
  const started = await startedByEach(deps, row, asks)
  const runs = started.flatMap((each) => ('run' in each ? [each.run] : []))
  const refused = started.flatMap((each, i) => ('refusal' in each ? [unfired(fire[i]!, each.refusal)] : []))
  const disabled = settled.missed ? await disabledSince(deps, row, settled.missed, { refused, runs }) : undefined
  const met = meeting(settled, ask.unfinished, runs)
  const gaps = gapsOf(row, { settled, when: ticking.when, runs, refused: [...refused, ...met], disabled, ask })
  const after = following(row, rest, Math.max(settled.upTo, first?.until ?? 0))
  return { row, ask, runs, cancel: settled.cancel as RunId[], ...joined(row, gaps), settled: after }
}

function askFor(
  row: ScheduleRow,
  { at, lateMs, isCatchUp, delayMs }: Pick<Firing, 'at' | 'lateMs' | 'isCatchUp' | 'delayMs'>,
) {
  const tick = { how: isCatchUp ? ('caught-up' as const) : ('due' as const), at, lateMs: Math.round(lateMs) }
  return askOf(row, { kind: 'schedule', id: row.id, tick }, delayMs)
}

/** Ticks that start no run. */
type Unfired = Pick<NewGap, 'from' | 'to' | 'count'> & { isCatchUp: boolean; runId?: RunId } & Refusal

const unfired = ({ at, isCatchUp }: Firing, refusal: Refusal): Unfired => ({
  from: at,
  to: at,
  count: 1,
  isCatchUp,
  ...refusal,
})

/** Where another tick fires they are left out for that one, else for the run that was unfinished before. */
function meeting({ skip, fire }: Settled, unfinished: readonly RunId[], runs: readonly NewRun[]): Unfired[] {
  const runId = fire.length === 0 ? unfinished.at(-1) : undefined
  const started = runs[0] ? `, and started ${runs[0].id}` : ''
  const message = runId ? `Its run ${runId} had not finished.` : `Another tick was due as well${started}.`
  return skip.map((firing) => ({ ...unfired(firing, { reason: 'OVERLAP', message }), ...(runId && { runId }) }))
}

/** What is to be said of ticks that were missed while the workflow was disabled: not that nobody was there. */
async function disabledSince(
  deps: PrepareDeps,
  row: ScheduleRow,
  missed: Missed,
  { refused, runs }: { refused: readonly Refusal[]; runs: readonly NewRun[] },
): Promise<Refusal | undefined> {
  if (runs.length > 0) return undefined
  if (refused.length > 0) return refused.find(({ since }) => since !== undefined)
  const last = { at: missed.to, lateMs: row.now - missed.to, isCatchUp: true, delayMs: 0 }
  const tried = await startedBy(deps, row, askFor(row, last))
  return 'refusal' in tried && tried.refusal.since !== undefined ? tried.refusal : undefined
}

interface PassOutcome {
  settled: Settled
  when: When
  runs: readonly NewRun[]
  refused: readonly Unfired[]
  disabled: Refusal | undefined
  ask: PlanAsk
}

/** Each tick of which no run came, or a late one, once. */
function gapsOf(
  row: ScheduleRow,
  { settled: { missed, fire }, when, runs, refused, disabled, ask }: PassOutcome,
): NewGap[] {
  if (!missed) return merged(row, refused)
  const since = Math.max(disabled?.since ?? Infinity, missed.from - 1)
  const isWithin = (tick: Unfired) => tick.isCatchUp && tick.from > since
  const meanwhile = disabled && since < missed.to ? [{ ...disabled, ...range(when, since, missed.to) }] : []
  const apart = refused.filter((tick) => !isWithin(tick))
  const had = fire.filter(({ at, isCatchUp }) => isCatchUp && at <= since && ask.started?.includes(at))
  const others = [...apart.filter((tick) => tick.isCatchUp).map(({ from }) => from), ...had.map(({ at }) => at)]
  const count = missed.count - others.length - (meanwhile[0]?.count ?? 0)
  const caughtUp = runs.filter(({ tick }) => tick?.how === 'caught-up').length
  const left = { ...without(when, { from: missed.from, to: Math.min(missed.to, since) }, others), count, caughtUp }
  return [...missedGap(row, left), ...merged(row, [...meanwhile, ...apart])]
}

const range = (when: When, after: number, to: number) => ({
  from: nextTick(when, after) ?? to,
  to,
  count: countTicks(when, after, to),
  isCatchUp: true,
})

/** From the first to the last tick that is not among the others. */
function without(when: When, { from, to }: { from: number; to: number }, others: readonly number[]) {
  const newest = newestTicks(when, from - 1, to, others.length + 1).filter((at) => !others.includes(at))
  let first = from
  while (others.includes(first)) first = nextTick(when, first) ?? to
  return { from: first, to: newest.at(-1) ?? first }
}

const gapOf = ({ id, orgId }: ScheduleRow) => ({ scheduleId: id, orgId, runId: null, caughtUp: 0, firedAt: null })

function missedGap(row: ScheduleRow, { from, to, count, caughtUp }: Missed): NewGap[] {
  if (count <= 0) return []
  const made = caughtUp === 0 ? 'none of them was caught up' : `of these ${caughtUp} fired late`
  const message = `Nobody was there to fire ${count === 1 ? 'the tick' : `${count} ticks`} in time; ${made}.`
  const firedAt = caughtUp === 0 ? null : row.now
  return [{ ...gapOf(row), outcome: 'missed', reason: 'MISSED', message, from, to, count, caughtUp, firedAt }]
}

/** Ticks in a row of which the same is to be said are one gap. */
function merged(row: ScheduleRow, ticks: readonly Unfired[]): NewGap[] {
  const gaps: NewGap[] = []
  for (const { from, to, count, reason, message, runId = null } of ticks) {
    const last = gaps.at(-1)
    if (last && isAlike(last, { outcome: 'skipped', reason, message, runId })) {
      last.to = to
      last.count += count
    } else gaps.push({ ...gapOf(row), outcome: 'skipped', reason, message, runId, from, to, count })
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
