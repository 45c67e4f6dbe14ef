import { setImmediate } from 'node:timers/promises'
import { Fault } from '@windlass/shared/errors.ts'
import type { Log } from '@windlass/shared/log.ts'
import type { Config } from '../config.ts'
import { isConnectionLoss } from '../db/client.ts'
import type { PrepareDeps } from '../engine/commit/trigger.ts'
import { inTime, isInTime } from '../in-time.ts'
import { createSlices } from '../slices.ts'
import type { SchedulesBehind, Waiting } from './behind.ts'
import { type Begun, createBegun } from './begun.ts'
import type { PassWait } from './patience.ts'
import { type Plan, type PlanAsk, planOf } from './plan.ts'
import { weightOf } from './portions.ts'
import type { ScheduleRow } from './row.ts'

/** Of one org in one pass: the ticks of others wait for its end. What is left is decided anew with the next pass. */
const RUNS_OF_ORG = 512
/** After so long an org begins no further tick in its turn. */
const DECIDING_MS = 1000
/** For each tick behind the others, where it may stand behind all else of its org that is judged. */
const DECIDING_BEHIND_MS = 2 * DECIDING_MS

type DecideDeps = PrepareDeps & { log: Log; config: Pick<Config, 'maxCatchUp'>; schedulesBehind: SchedulesBehind }

export interface Decision {
  plans: Plan[]
  /** Those that nobody can decide now. */
  waiting: ScheduleRow[]
  /** Those that others would wait for too long. */
  slow: Waiting[]
}

type UnfinishedRuns = ReadonlyMap<string, PlanAsk['unfinished']>

/** Decides what becomes of the ticks of several orgs, which wait for each other. */
export async function decideTogether(
  deps: DecideDeps,
  ofOrgs: readonly ScheduleRow[][],
  unfinished: UnfinishedRuns,
): Promise<Decision[]> {
  const wait = deps.schedulesBehind.patience.begin(ofOrgs.length)
  const decideOne = async (rows: ScheduleRow[]) => {
    const decision = await decideEach(deps, rows, { unfinished, wait })
    wait.decided()
    return decision
  }
  try {
    return await Promise.all(ofOrgs.map(decideOne))
  } finally {
    wait.end()
  }
}

/** The same for one org, which no others wait for. `begun`: of its schedules that passes have given up. */
export async function decideBehind(
  deps: DecideDeps,
  rows: readonly ScheduleRow[],
  ask: { unfinished: UnfinishedRuns; begun: ReadonlyMap<string, Begun> },
): Promise<Decision> {
  const end = deps.schedulesBehind.slowOrgs.begin(rows[0]!.orgId)
  try {
    return await decideEach(deps, rows, ask)
  } finally {
    end()
  }
}

interface DecideAsk {
  unfinished: UnfinishedRuns
  /** Left out: nobody waits for them. */
  wait?: PassWait
  begun?: ReadonlyMap<string, Begun>
}

async function decideEach(
  deps: DecideDeps,
  rows: readonly ScheduleRow[],
  { unfinished, wait, begun }: DecideAsk,
): Promise<Decision> {
  const since = performance.now()
  const passed = () => performance.now() - since
  const slices = createSlices()
  const found: Decision = { plans: [], waiting: [], slow: [] }
  let weight = 0
  for (const [i, row] of rows.entries()) {
    const ask = { unfinished: unfinished.get(row.id) ?? [], most: deps.config.maxCatchUp }
    const planning = begun?.get(row.id)?.planFor(row) ?? planOf(deps, row, ask)
    if (wait && !(await isSoonDone(wait, planning)))
      return { ...found, slow: [{ ...row, begun: createBegun(row, planning) }, ...rows.slice(i + 1)] }
    try {
      const plan = await inTime(DECIDING_BEHIND_MS, planning)
      found.plans.push(plan)
      weight += weightOf(plan)
    } catch (error) {
      if (isConnectionLoss(error)) throw error
      const level = error instanceof Fault ? 'warn' : 'error'
      deps.log[level]('schedule.undecided', { schedule: row.id, error })
      found.waiting.push(row)
    }
    if (weight >= RUNS_OF_ORG || (wait ? wait.isOver() : passed() > DECIDING_MS)) break
    await slices()
  }
  return found
}

/** What has come while this process stood still is read first: nobody is slow because of that. */
async function isSoonDone({ over }: PassWait, work: Promise<unknown>): Promise<boolean> {
  const isDone = () => true
  if (await Promise.race([work.then(isDone, isDone), over.then(() => false)])) return true
  await setImmediate()
  return isInTime(0, work)
}
