import { setImmediate } from 'node:timers/promises'
import { Fault } from '@windlass/shared/errors.ts'
import type { Log } from '@windlass/shared/log.ts'
import type { Config } from '../config.ts'
import { isConnectionLoss } from '../db/client.ts'
import type { PrepareDeps } from '../engine/commit/trigger.ts'
import { inTime, isInTime } from '../in-time.ts'
import { createSlices } from '../slices.ts'
import type { SchedulesBehind } from './behind.ts'
import { type Plan, type PlanAsk, planOf } from './plan.ts'
import { weightOf } from './portions.ts'
import type { ScheduleRow } from './row.ts'

/** Of one org in one pass: the ticks of others wait for its end. What is left is decided anew with the next pass. */
const RUNS_OF_ORG = 512
/**
 * For which the ticks of others wait in a pass. A millisecond for each tick is usual, but inputs that are slow to judge
 * take a second, and stand in a line with all else of their org that is judged: they are decided behind the others.
 */
const BESIDE_OTHERS_MS = 50
/** After so long an org begins no further tick in its turn. */
const DECIDING_MS = 1000
/** For each tick behind the others, where it is judged once more, after what was given up beside them. */
const DECIDING_BEHIND_MS = 2 * DECIDING_MS

type DecideDeps = PrepareDeps & { log: Log; config: Pick<Config, 'maxCatchUp'>; schedulesBehind: SchedulesBehind }

export interface Decision {
  plans: Plan[]
  /** Those that nobody can decide now. */
  waiting: ScheduleRow[]
  /** Those that others would wait for too long. */
  slow: ScheduleRow[]
}

interface DecideAsk {
  unfinished: ReadonlyMap<string, PlanAsk['unfinished']>
  /** No ticks of other orgs wait for these. */
  isBehind: boolean
}

/** Decides what becomes of the ticks of one org. */
export async function decide(deps: DecideDeps, rows: readonly ScheduleRow[], ask: DecideAsk): Promise<Decision> {
  const end = ask.isBehind ? deps.schedulesBehind.slowOrgs.begin(rows[0]!.orgId) : undefined
  try {
    return await decideEach(deps, rows, ask)
  } finally {
    end?.()
  }
}

async function decideEach(deps: DecideDeps, rows: readonly ScheduleRow[], ask: DecideAsk): Promise<Decision> {
  const since = performance.now()
  const passed = () => performance.now() - since
  const slices = createSlices()
  const found: Decision = { plans: [], waiting: [], slow: [] }
  let weight = 0
  for (const [i, row] of rows.entries()) {
    const planning = planOf(deps, row, { unfinished: ask.unfinished.get(row.id) ?? [], most: deps.config.maxCatchUp })
    if (!ask.isBehind && !(await isSoonDone(BESIDE_OTHERS_MS - passed(), planning)))
      return { ...found, slow: rows.slice(i) }
    try {
      const plan = await inTime(ask.isBehind ? DECIDING_BEHIND_MS : DECIDING_MS, planning)
      found.plans.push(plan)
      weight += weightOf(plan)
    } catch (error) {
      if (isConnectionLoss(error)) throw error
      const level = error instanceof Fault ? 'warn' : 'error'
      deps.log[level]('schedule.undecided', { schedule: row.id, error })
      found.waiting.push(row)
    }
    if (weight >= RUNS_OF_ORG || passed() > DECIDING_MS) break
    await slices()
  }
  return found
}

/** What has come while this process stood still is read first: nobody is slow because of that. */
async function isSoonDone(ms: number, work: Promise<unknown>): Promise<boolean> {
  if (await isInTime(Math.max(0, ms), work)) return true
  await setImmediate()
  return isInTime(0, work)
}
