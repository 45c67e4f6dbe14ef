import { Fault } from '@windlass/shared/errors.ts'
import type { RunId } from '@windlass/shared/ids.ts'
import type { Run } from '@windlass/shared/model/run.ts'
import type { Db } from '../db/client.ts'
import type { Version, Versions } from '../workflows/targets.ts'
import type { Acting } from '../actor.ts'
import { record } from '../audit/record.ts'
import { announce, type AnnounceDeps } from '../engine/commit/announce.ts'
import { lockRuns } from '../engine/commit/lock.ts'
import { again } from '../engine/rules/outcome.ts'
import { type Moving, presentRun } from '../engine/rules/run.ts'
import { saveMoves } from '../engine/commit/save.ts'
import { leaveQueue } from '../engine/commit/queue.ts'
import { find } from './store.ts'

type RestartDeps = { db: Db; versions: Versions } & AnnounceDeps

/**
 * Lets a blocked run start again from the top, as its next attempt. What its former attempts bought is taken over where the
 * program asks for the same again, unless its descriptor wants a fresh start; what does not match is new work.
 */
export async function restartRun(deps: RestartDeps, caller: Acting, runId: RunId): Promise<Run> {
  const found = await find(deps.db, caller.orgId, runId)
  if (!found) throw new Fault('NOT_FOUND', { run: runId })
  const version = await deps.versions.get(found.versionId)
  const moved = await deps.db.begin(async (tx) => {
    const run = (await lockRuns(tx, [runId])).get(runId)!
    await leaveQueue(tx, [runId])
    const before = standing(run)
    startAnew(run, version, caller)
    await saveMoves(tx, [run])
    await record(tx, caller, {
      action: 'runs.restart',
      target: { type: 'run', id: runId },
      before,
      after: standing(run),
    })
    return run
  })
  announce(deps, [moved])
  return presentRun((await find(deps.db, caller.orgId, runId))!)
}

const standing = ({ status, attempt }: Moving) => ({ status, attempt })

function startAnew(run: Moving, version: Version, caller: Acting): void {
  const { blocked } = run
  if (blocked === null)
    throw new Fault(
      'RUN_NOT_BLOCKED',
      { run: run.id, status: run.status },
      `The run is ${run.status} and not blocked. \`retry\` starts a new run with the same input.`,
    )
  run.blocked = null
  run.replays = run.cutReplays = 0
  again(run, Date.now(), version, { reason: 'it was blocked, and a restart was asked for', by: caller.id, blocked })
}
