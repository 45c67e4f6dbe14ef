import { isSuspended } from '@windlass/shared/model/run.ts'
import type { Deps } from '../deps.ts'
import * as placements from './store.ts'
import { announce, type AnnounceDeps } from '../runs/announce.ts'
import { lockRuns, requeue, rest } from '../runs/moves.ts'
import { lose } from '../runs/outcome.ts'
import { saveMoves } from '../runs/save-moves.ts'
import { warmVersions } from '../runs/versions.ts'
import type { Moving } from '../runs/row.ts'

export interface LoseOptions {
  reason: string
  /** Which of the placements, seen again under lock, are to go. */
  isLost(placement: placements.PlacementRow): boolean
}

/**
 * Takes runs away from processes that are not coming back. An offer that was never accepted goes back into the queue
 * without a word about attempts: nothing has been executed.
 */
export async function loseRuns(
  deps: Pick<Deps, 'db' | 'config' | 'versions' | 'log'> & AnnounceDeps,
  runIds: readonly string[],
  options: LoseOptions,
): Promise<number> {
  if (runIds.length === 0) return 0
  await warmVersions(deps, runIds)
  const moved = await deps.db.begin(async (tx) => {
    const runs = await lockRuns(tx, runIds, runIds)
    const found = await placements.recheck(tx, runIds, deps.config.offerMs)
    const moved: Moving[] = []
    for (const placement of found.values()) {
      const run = runs.get(placement.runId)
      if (!run || run.epoch !== placement.epoch || !options.isLost(placement)) continue
      const at = Date.now()
      if (placement.accepted || run.timedOut || (run.status !== 'pending' && run.place !== 'replaying'))
        lose(run, at, await deps.versions.get(run.versionId), { reason: options.reason, runner: run.runnerId })
      else if (run.place === 'replaying' && isSuspended(run.status)) rest(run)
      else requeue(run, at, { reason: 'the offer was not accepted in time' })
      moved.push(run)
    }
    await saveMoves(tx, moved)
    return moved
  })
  for (const run of moved)
    deps.log.warn('run.lost', {
      runId: run.id,
      runnerId: run.runnerId,
      attempt: run.attempt,
      status: run.status,
      reason: options.reason,
    })
  announce(deps, moved)
  return moved.length
}
