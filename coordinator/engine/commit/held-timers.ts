import type { RunId } from '@windlass/shared/ids.ts'
import type { Log } from '@windlass/shared/log.ts'
import { type Db, isConnectionLoss } from '../../db/client.ts'
import type { Interval } from './grace.ts'
import { type DoubtDeps, doubtfulAfterMs } from './in-doubt.ts'
import { beyond, type DueOfRun, isLight, type TimersBehind } from './timers-behind.ts'
import * as store from '../store/held-timers.ts'
import { entriesOf } from '../store/runs.ts'
import type { DueTimer, Upcoming } from '../store/timers.ts'

export interface HoldDeps extends DoubtDeps {
  db: Db
  log: Log
  timersBehind: Pick<TimersBehind, 'inDoubt'>
}

/** When to look again whether an agent was heard. */
const AGAIN_MS = 1000

/** Entries of the runs that a pass asks about: all timers of these may be put off in it, 30 µs each. */
const ENTRIES_BESIDE_OTHERS = 2000

type Act = (free: Upcoming[]) => Promise<void>

/**
 * Puts off those of these that nobody could have met, or that are about something of which we have yet to hear. Answers
 * the others. But for the time after an outage it asks of those runs alone whose whole time is over. What may take long
 * is asked behind the pass, and so is what could not be asked in it, run by run in the end: nobody's timers are done
 * because those of somebody else could not be put off. `act` does what is free then.
 */
export async function holdBack(deps: HoldDeps, due: Upcoming[], act: Act): Promise<Upcoming[]> {
  const isAsked = askedOf(deps)
  const asked = due.filter(isAsked)
  if (asked.length === 0) return due
  const others = due.filter((timer) => !isAsked(timer))
  const long = await withLongJournals(deps, asked)
  const behind = asked.filter(({ runId }) => long.has(runId))
  const beside = asked.filter(({ runId }) => !long.has(runId))
  askBehind(deps, behind, { act, weights: long })
  try {
    const free = new Set([...others, ...(await withoutHeld(deps, beside))])
    return due.filter((timer) => free.has(timer))
  } catch (error) {
    if (isConnectionLoss(error)) throw error
    deps.log.warn('timers.unheld', { count: beside.length, isAskedAgain: true, error })
    askBehind(deps, beside, { act, weights: new Map() })
    return others
  }
}

/** Those that may be put off by now. */
function askedOf(deps: HoldDeps): (timer: Upcoming) => boolean {
  const isAfterOutage = deps.grace.now() !== undefined
  const isBehind = isAfterOutage || deps.backlog.isThere()
  return ({ kind }) => {
    if (kind === 'wall-timeout') return true
    return kind === 'queue-timeout' ? isAfterOutage : isBehind && kind !== 'enqueue'
  }
}

/** The runs that a pass cannot ask about, by how many entries they have. */
async function withLongJournals({ db }: HoldDeps, asked: readonly Upcoming[]): Promise<Map<RunId, number>> {
  const waking = new Map(asked.filter(isWake).map(({ runId, orgId }) => [runId, orgId]))
  if (waking.size === 0) return new Map()
  const entries = await entriesOf(db, [...waking.keys()])
  const weighed = [...waking].map(([runId, orgId]) => ({ runId, orgId, weight: entries.get(runId) ?? 0 }))
  const most = [...weighed.filter((run) => !isLight(run)), ...beyond(weighed.filter(isLight), ENTRIES_BESIDE_OTHERS)]
  return new Map(most.map(({ runId, weight }) => [runId, weight]))
}

const isWake = ({ kind }: Upcoming) => kind === 'sleep' || kind === 'input'

interface Behind {
  act: Act
  /** Entries of the runs, where they are known to be many. */
  weights: ReadonlyMap<RunId, number>
}

function askBehind(deps: HoldDeps, due: readonly Upcoming[], { act, weights }: Behind): void {
  const ofRuns = [...Map.groupBy(due, ({ runId }) => runId)]
  deps.timersBehind.inDoubt.add(
    ofRuns.map(([runId, timers]) => {
      const item = { orgId: timers[0]!.orgId, runId, timers }
      // Its org has one transaction at a time here, and no other org waits for it.
      return { item, weight: weights.get(runId) ?? 0, isLimited: true }
    }),
    async (runs) => {
      const free = await freeOf(deps, runs)
      if (free.length > 0) await act(free)
    },
  )
}

/** What fails with others is asked run by run. A run of which it fails alone does not wait for ever. */
async function freeOf(deps: HoldDeps, runs: readonly DueOfRun[]): Promise<Upcoming[]> {
  const timers = runs.flatMap((run) => run.timers)
  try {
    return await withoutHeld(deps, timers)
  } catch (error) {
    if (isConnectionLoss(error)) throw error
    if (runs.length === 1) {
      deps.log.warn('timers.unheld', { run: runs[0]!.runId, count: timers.length, error })
      return timers
    }
  }
  const free: Upcoming[] = []
  for (const run of runs) free.push(...(await freeOf(deps, [run])))
  return free
}

async function withoutHeld(deps: HoldDeps, due: Upcoming[]): Promise<Upcoming[]> {
  const { db } = deps
  const grace = deps.grace.now()
  const doubt = { silentMs: doubtfulAfterMs(deps), forMs: AGAIN_MS }
  const walls = runsOf(due, 'wall-timeout')
  // Its process may have ended in time.
  const held = walls.length > 0 ? await store.holdWalls(db, walls, doubt) : []
  // A child may have ended in an outage.
  const waking = grace || deps.backlog.isThere() ? runsOf(due, 'sleep', 'input') : []
  const asleep = waking.length > 0 ? await store.holdWakes(db, waking, doubt) : []
  held.push(...asleep)
  if (grace) held.push(...(await holdInGrace(db, due, grace, asleep)))
  const keys = new Set(held.map(keyOf))
  return keys.size === 0 ? due : due.filter((timer) => !keys.has(keyOf(timer)))
}

/** Nobody could claim a run in the outage or answer a question. */
async function holdInGrace(db: Db, due: Upcoming[], grace: Interval, asleep: readonly DueTimer[]): Promise<DueTimer[]> {
  const since = { gapAtMs: grace.gapAtMs, forMs: grace.leftMs }
  const queued = runsOf(due, 'queue-timeout')
  const held = queued.length > 0 ? await store.holdQueues(db, queued, since) : []
  const asking = runsOf(due, 'input').filter((runId) => !asleep.some((timer) => timer.runId === runId))
  if (asking.length > 0) held.push(...(await store.holdQuestions(db, asking, since)))
  return held
}

const keyOf = ({ runId, kind, n }: DueTimer) => `${runId}/${kind}/${n}`

const runsOf = (due: readonly Upcoming[], ...kinds: DueTimer['kind'][]) => [
  ...new Set(due.flatMap(({ runId, kind }) => (kinds.includes(kind) ? [runId] : []))),
]
