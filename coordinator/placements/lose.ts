import type { Deps } from '../deps.ts'
import * as placements from './store.ts'
import { announce } from '../runs/apply.ts'
import { lockRuns, requeue, saveMoves } from '../runs/moves.ts'
import { crash } from '../runs/outcome.ts'
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
  deps: Pick<Deps, 'db' | 'config' | 'versions' | 'tails' | 'bell' | 'dispatchers' | 'log'>,
  runIds: readonly string[],
  options: LoseOptions,
): Promise<number> {
  if (runIds.length === 0) return 0
  // Looked up now: in the transaction it would take a second connection, and agents that come back together could hold them all.
  const versionIds = await placements.versionsOf(deps.db, runIds)
  await Promise.all(versionIds.map((id) => deps.versions.get(id)))
  const moved = await deps.db.begin(async (tx) => {
    const runs = await lockRuns(tx, runIds)
    const found = await placements.recheck(tx, runIds, deps.config.offerMs)
    const moved: Moving[] = []
    for (const placement of found.values()) {
      const run = runs.get(placement.runId)
      if (!run || run.epoch !== placement.epoch || !options.isLost(placement)) continue
      const at = Date.now()
      if (placement.accepted || run.status !== 'pending')
        crash(run, at, await deps.versions.get(run.versionId), { reason: options.reason, runner: run.runnerId })
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
