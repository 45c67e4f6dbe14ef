import type { Log } from '@windlass/shared/log.ts'
import { probe } from '@windlass/shared/probe.ts'
import type { ScheduleId } from '@windlass/shared/ids.ts'
import type { Config } from '../config.ts'
import { type Db, isConnectionLoss, mayPass, PostgresError } from '../db/client.ts'
import type { Partitions } from '../db/partitions.ts'
import { createRuns, isLimitedRun, tellOfNew, type TriggerDeps } from '../engine/commit/trigger.ts'
import { isNothing, passedOver, putBehind, type SchedulesBehind, type Waiting, withoutBehind } from './behind.ts'
import type { Begun } from './begun.ts'
import { decideBehind, decideTogether } from './decide.ts'
import { type EndOfOrg, ENDED_AT_ONCE, enqueueEnds } from './end-runs.ts'
import { type Plan, planOf } from './plan.ts'
import { type HoldDeps, withoutHeld } from './held.ts'
import { fitting, pieces } from './portions.ts'
import type { ScheduleRow } from './row.ts'
import * as store from './store.ts'
import * as settling from './store-settle.ts'

/** 10,000 schedules of one minute are 100 transactions, between which others have their turn. */
const AT_ONCE = 100
/** Of so many that are due some are taken: other coordinators look at the same moment, and begin elsewhere. */
const SEEN = 4 * AT_ONCE
/** After a failure that may pass. */
const PUT_OFF_MS = 5000
/** After one that will not. */
const PUT_OFF_LONG_MS = 60_000
/** One org may hold the locks of its limits for long, and its ticks hold a connection meanwhile. */
const LIMITED_MS = 3000

type FireDeps = TriggerDeps & { db: Db; log: Log; partitions: Partitions; config: Pick<Config, 'maxCatchUp'> } & {
  schedulesBehind: SchedulesBehind
} & HoldDeps

/** Somebody else held what was due so many times in a row: we look again after a pause. */
const MOST_IDLE = 3
const LOOK_AGAIN_MS = 100

/**
 * Settles what is due by now, or until the signal fires. Answers in how many milliseconds the next tick is due; null:
 * there is none.
 */
export async function fireSchedules(deps: FireDeps, signal?: AbortSignal): Promise<number | null> {
  for (let idle = 0; idle < MOST_IDLE;) {
    if (signal?.aborted) return null
    const passed = passedOver(deps)
    const found = await settling.upcoming(deps.db, SEEN, passed)
    const due = found.filter(({ inMs }) => inMs <= 0)
    const next = found[0]?.inMs ?? null
    if (due.length === 0) return isNothing(passed) ? next : Math.min(LOOK_AGAIN_MS, next ?? Infinity)
    const settle = (some: readonly Waiting[]) => settleBehind(deps, some, signal)
    const { mine, isAnyBehind } = await withoutBehind(deps, await dueNow(deps.db, some(due)), settle)
    const { isAny, slow } = await settleRows(deps, mine, { signal })
    putBehind(deps, slow, settle)
    idle = isAny || isAnyBehind || slow.length > 0 ? 0 : idle + 1
  }
  return LOOK_AGAIN_MS
}

/**
 * Settles what has its turn behind others. False: somebody else is changing all of them. Who has done so by now is not
 * waited for: nothing of them is left to be done, and others wait for the turn.
 */
export async function settleBehind(deps: FireDeps, some: readonly Waiting[], signal?: AbortSignal): Promise<boolean> {
  const ids = some.map(({ id }) => id)
  const begun = new Map(some.flatMap(({ id, begun }) => (begun ? [[id, begun] as const] : [])))
  const { isAny } = await settleRows(deps, await dueNow(deps.db, ids), { begun, signal })
  return isAny || (await dueNow(deps.db, ids)).length === 0
}

/** The first of each org, as its next ones may be slow; and some of the others. */
function some(due: readonly settling.Upcoming[]): ScheduleId[] {
  const [firsts, others] = [due.filter(({ turn }) => turn === 1), due.filter(({ turn }) => turn !== 1)]
  return [...stretch(firsts), ...stretch(others)].map(({ id }) => id)
}

function stretch<T>(all: readonly T[]): T[] {
  const begin = Math.floor((Math.random() * all.length) / AT_ONCE) * AT_ONCE
  return all.slice(begin, begin + AT_ONCE)
}

interface SettleAsk {
  /** What is being decided already, of rows of one org which no others wait for. Left out: they wait for each other. */
  begun?: ReadonlyMap<ScheduleId, Begun>
  signal: AbortSignal | undefined
}

interface Settled {
  /** False: somebody else is changing all of them, and nothing was done. */
  isAny: boolean
  /** What is left for behind the others. */
  slow: Waiting[]
}

async function settleRows(
  deps: FireDeps,
  rows: readonly ScheduleRow[],
  { begun, signal }: SettleAsk,
): Promise<Settled> {
  const { mine, isAnyHeld, unfinished } = await withoutHeld(deps, rows)
  const byOrg = [...Map.groupBy(mine, ({ orgId }) => orgId).values()]
  const decided = begun
    ? await Promise.all(byOrg.map((own) => decideBehind(deps, own, { unfinished, begun })))
    : await decideTogether(deps, byOrg, unfinished)
  const waiting = decided.flatMap((own) => own.waiting)
  const slow = decided.flatMap((own) => own.slow)
  if (waiting.length > 0) await settling.putOff(deps.db, waiting, PUT_OFF_MS)
  let isAny = isAnyHeld || waiting.length > 0
  for (const piece of pieces(fitting(decided.map(({ plans }) => plans)))) {
    if (signal?.aborted) return { isAny: true, slow }
    if (await commitOrPutOff(deps, piece)) isAny = true
  }
  return { isAny, slow }
}

/** The most overdue first: where an org has more than a pass decides, the same ones would win each time. */
async function dueNow(db: Db, ids: readonly ScheduleId[]): Promise<ScheduleRow[]> {
  const rows = new Map((await store.findAll(db, ids)).map((row) => [row.id, row]))
  return ids.flatMap((id) => rows.get(id) ?? []).filter(({ dueAt, now }) => dueAt !== null && dueAt <= now)
}

/** One schedule that fails time and again must not hold up the others. False: somebody else holds all of them. */
async function commitOrPutOff(deps: FireDeps, plans: Plan[]): Promise<boolean> {
  try {
    return (await commit(deps, plans)) > 0
  } catch (error) {
    if (isConnectionLoss(error)) throw error
    const rows = plans.map(({ row }) => row)
    if (mayPass(error)) {
      deps.log.warn('schedules.putOff', { count: plans.length, error })
      await settling.putOff(deps.db, rows, PUT_OFF_MS)
      return true
    }
    if (plans.length > 1) {
      for (const plan of plans) await commitOrPutOff(deps, [plan])
      return true
    }
    const again = hasRun(error) ? await withoutStarted(deps, plans[0]!) : null
    if (again) return commitOrPutOff(deps, [again])
    deps.log.error('schedule.failed', { schedule: rows[0]?.id, error })
    await settling.putOff(deps.db, rows, PUT_OFF_LONG_MS)
    return true
  }
}

/**
 * The plan without the ticks that have their run already: what the database was before it was restored may have said
 * so. Null: there are none, or nobody can decide now.
 */
async function withoutStarted(deps: FireDeps, { row, runs, ask }: Plan): Promise<Plan | null> {
  const ticks = runs.flatMap(({ tick }) => tick?.at ?? [])
  const started = await store.ticksStarted(deps.db, row.id, ticks)
  if (started.length === 0) return null
  try {
    return await planOf(deps, row, { ...ask, started: [...(ask.started ?? []), ...started] })
  } catch (error) {
    if (isConnectionLoss(error)) throw error
    deps.log.warn('schedule.undecided', { schedule: row.id, error })
    return null
  }
}

const hasRun = (error: unknown) => error instanceof PostgresError && error.constraint_name === 'runs_by_tick'

/**
 * Moves the schedules on and creates their runs in one transaction: neither is without the other. Answers how many
 * schedules: others hold the rest.
 */
async function commit(deps: FireDeps, plans: readonly Plan[]): Promise<number> {
  const isLimited = plans.some(({ runs }) => runs.some(isLimitedRun))
  const mine = await deps.partitions.atHand(() =>
    deps.db.begin(async (tx) => {
      if (isLimited) await tx`select set_config('lock_timeout', ${String(LIMITED_MS)}, true)`
      const locked = await settling.lockDecided(
        tx,
        plans.map(({ row }) => row),
      )
      const mine = plans.filter(({ row }) => locked.has(row.id))
      if (mine.length === 0) return mine
      const runs = mine.flatMap((plan) => plan.runs)
      if (runs.length > 0) await createRuns(tx, runs)
      await settling.settle(tx, await withGaps(tx, mine))
      await enqueueEnds(tx, mine.flatMap(endOf))
      return mine
    }),
  )
  for (const plan of mine) tell(deps, plan)
  probe('schedules.settled', { schedules: mine.map(({ row }) => row.id) })
  return mine.length
}

async function withGaps(tx: Parameters<typeof settling.settle>[0], plans: readonly Plan[]) {
  await settling.lengthenGaps(
    tx,
    plans.flatMap(({ longer }) => longer ?? []),
  )
  const gaps = plans.flatMap((plan) => plan.gaps)
  const ids = await settling.insertGaps(tx, gaps)
  const last = new Map(gaps.map((gap, i) => [gap.scheduleId, ids[i]!]))
  return plans.map(({ row, runs, longer, settled }) => ({
    id: row.id,
    ...settled,
    gapId: runs.length > 0 ? null : (last.get(row.id) ?? longer?.id ?? null),
  }))
}

function endOf({ row, cancel, runs }: Plan): EndOfOrg[] {
  if (cancel.length === 0 || runs.length === 0) return []
  const { id: schedule, orgId } = row
  return [{ orgId, schedule, newRun: runs[0]!.id, runIds: cancel.toReversed(), isAll: cancel.length < ENDED_AT_ONCE }]
}

function tell(deps: FireDeps, { row, runs, gaps }: Plan): void {
  for (const run of runs) tellOfNew(deps, run)
  for (const { outcome, reason, from, to, count, caughtUp } of gaps)
    deps.log(`schedule.${outcome}`, { schedule: row.id, reason, from, to, count, caughtUp })
}
