import type { Log } from '@windlass/shared/log.ts'
import { type Db, isConnectionLoss } from '../../db/client.ts'
import type { Interval } from './grace.ts'
import { type DoubtDeps, doubtfulAfterMs } from './in-doubt.ts'
import * as store from '../store/held-timers.ts'
import type { DueTimer, Upcoming } from '../store/timers.ts'

export interface HoldDeps extends DoubtDeps {
  db: Db
  log: Log
}

/** When to look again whether an agent was heard. */
const AGAIN_MS = 1000

/**
 * Puts off those of these that nobody could have met, or that are about something of which we have yet to hear. Answers
 * the others. But for the time after an outage it asks of those runs alone whose whole time is over.
 */
export async function holdBack(deps: HoldDeps, due: Upcoming[]): Promise<Upcoming[]> {
  try {
    return await withoutHeld(deps, due)
  } catch (error) {
    if (isConnectionLoss(error)) throw error
    // Timers of all orgs wait behind these.
    deps.log.warn('timers.unheld', { count: due.length, error })
    return due
  }
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
