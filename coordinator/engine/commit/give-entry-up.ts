import type { Log } from '@windlass/shared/log.ts'
import { isOfOthers, isStatementTimeout } from '../../db/client.ts'
import { fail } from '../rules/transitions.ts'
import * as runStore from '../store/runs.ts'
import * as store from '../store/timers.ts'
import { type MoveDeps, moveRuns } from './move-runs.ts'
import type { TimersBehind } from './timers-behind.ts'

type Deps = MoveDeps & { log: Log; timersBehind: Pick<TimersBehind, 'stubborn'> }

/**
 * A run that can never be let into the queue would wait for its `timeout.wall`, or for ever. Answers whether it was
 * ended for that: when it failed alone time and again, while others entered between. What others hold, what takes too
 * long, and what the server lacks says nothing of it.
 */
export async function givesEntryUp(deps: Deps, timer: store.DueTimer, error: unknown): Promise<boolean> {
  const { runId, kind } = timer
  if (kind !== 'enqueue' || isOfOthers(error) || isStatementTimeout(error)) return false
  if (!deps.timersBehind.stubborn.failed(runId)) return false
  try {
    await giveUp(deps, timer)
  } catch (failure) {
    deps.log.error('timer.kept', { runId, kind, error: failure })
    return false
  }
  deps.log.error('run.entry.unusable', { runId, error })
  return true
}

async function giveUp(deps: Deps, timer: store.DueTimer): Promise<void> {
  const ids = [timer.runId]
  await moveRuns(deps, { ids, ending: ids }, async (tx, runs) => {
    const run = runs.get(timer.runId)
    const [taken] = await store.take(tx, [timer])
    if (!taken || run?.status !== 'queued') return { moved: [], answer: undefined }
    const message =
      'The coordinator could not let the run into its queue, however often it tried. ' +
      "Look for `timer.failed` with this run's id in its log."
    fail(run, deps.databaseClock.now(), { code: 'INTERNAL', message, detail: {} })
    await runStore.leaveQueue(tx, ids)
    return { moved: [run], answer: undefined }
  })
}
