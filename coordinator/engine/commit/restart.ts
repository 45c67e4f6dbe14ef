import { Fault } from '@windlass/shared/errors.ts'
import type { RunId } from '@windlass/shared/ids.ts'
import type { Acting } from '../../actor.ts'
import { record } from '../../audit/record.ts'
import type { VersionTerms } from '../../workflows/terms.ts'
import { again } from '../rules/outcome.ts'
import type { Moving } from '../rules/run.ts'
import * as store from '../store/runs.ts'
import { type MoveDeps, moveRuns } from './move-runs.ts'

/** Lets a blocked run start again from the top, as its next attempt. Throws RUN_NOT_BLOCKED. */
export function restartBlocked(deps: MoveDeps, caller: Acting, runId: RunId, version: VersionTerms): Promise<void> {
  return moveRuns(deps, { ids: [runId], ending: [] }, async (tx, runs) => {
    const run = runs.get(runId)!
    await store.leaveQueue(tx, [runId])
    const before = stateOf(run)
    startAnew(run, version, { caller, at: deps.databaseClock.now() })
    const change = { action: 'runs.restart', target: { type: 'run', id: runId }, before, after: stateOf(run) }
    await record(tx, caller, change)
    return { moved: [run], answer: undefined }
  })
}

const stateOf = ({ status, attempt }: Moving) => ({ status, attempt })

function startAnew(run: Moving, version: VersionTerms, { caller, at }: { caller: Acting; at: number }): void {
  const { blocked } = run
  if (blocked === null)
    throw new Fault(
      'RUN_NOT_BLOCKED',
      { run: run.id, status: run.status },
      `The run is ${run.status} and not blocked. \`retry\` starts a new run with the same input.`,
    )
  run.blocked = null
  run.replays = run.cutReplays = 0
  again(run, at, version, { reason: 'it was blocked, and a restart was asked for', by: caller.id, blocked })
}
