import type { Wake } from '@windlass/shared/wire/agent.ts'
import type { PoolId } from '@windlass/shared/ids.ts'
import { probe } from '@windlass/shared/probe.ts'
import type { DatabaseClock } from '../../db/database-clock.ts'
import type { Bell } from '../../events/bell.ts'
import type { Dispatchers } from '../../dispatch/dispatcher.ts'
import type { Metrics } from '../../metrics/metrics.ts'
import type { Tails } from '../../events/live.ts'
import { ringRun } from '../../events/ring.ts'
import type { Timers } from './clock.ts'
import type { Floors } from './floors.ts'
import { isChanged } from '../rules/journal.ts'
import type { Moving } from '../rules/run.ts'
import { mayEnterAsResume } from '../rules/transitions.ts'
import { tellOfNew } from './trigger.ts'

export type AnnounceDeps = {
  tails: Tails
  bell: Bell
  dispatchers: Dispatchers
  tellWake: (runnerId: string, wake: Wake) => void
  tellWakes: (runnerId: string) => void
  timers: Timers
  floors: Floors
  databaseClock: Pick<DatabaseClock, 'now'>
  metrics: Metrics
}

/**
 * Tells those who wait, after the commit: readers of these logs, pools in whose queue something has come, agents whose
 * programs wait for what is there now.
 */
export function announce(deps: AnnounceDeps, given: Iterable<Moving>): void {
  for (const run of given) {
    if (run.loss) deps.metrics.runLost(run.loss.what)
    tell(deps, run)
    if (run.parent && isChanged(run.parent.journal)) tell(deps, run.parent)
  }
  probe('runs.moved', {})
}

function tell(deps: AnnounceDeps, run: Moving): void {
  if (run.events.length > 0) ringRun(deps, run)
  for (const child of run.journal.children) tellOfNew(deps, child)
  for (const poolId of poolsOf(run)) {
    deps.dispatchers.poke(poolId)
    deps.bell.ring('pool', poolId)
  }
  const { completed, entries, adopted } = run.journal
  if (completed.length > 0 && run.place !== null && run.runnerId !== null)
    deps.tellWake(run.runnerId, { run: run.id, epoch: run.epoch, completions: completed })
  // What was taken over may have been completed since the journal was handed out.
  if (adopted.length > 0 && run.place !== null && run.runnerId !== null) deps.tellWakes(run.runnerId)
  for (const { due } of entries)
    if (due) deps.timers.expect('inMs' in due ? due.inMs : due.at - deps.databaseClock.now())
  const laterMs = run.requeued?.delayMs || run.replayAfterMs
  if (laterMs) deps.timers.expect(laterMs)
}

function poolsOf(run: Moving): Set<PoolId> {
  const pools = new Set(run.pokes)
  const comes = run.requeued?.delayMs === 0 || (mayEnterAsResume(run) && (run.released || isChanged(run.journal)))
  if (comes) pools.add(run.poolId)
  return pools
}
