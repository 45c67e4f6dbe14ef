import { Fault } from '@windlass/shared/errors.ts'
import type { RunId } from '@windlass/shared/ids.ts'
import type { Run } from '@windlass/shared/model/run.ts'
import type { Caller } from '../actor.ts'
import type { Tx } from '../db/client.ts'
import type { Deps } from '../deps.ts'
import { enqueue } from '../jobs/queue.ts'
import { announce } from './apply.ts'
import { finish, lockRuns, move, saveMoves } from './moves.ts'
import { type Moving, presentRun } from './row.ts'
import * as store from './store.ts'

type CancelDeps = Pick<Deps, 'db' | 'config' | 'versions' | 'tails' | 'bell' | 'dispatchers' | 'tellCancels'>

/** What is at rest ends here and now; what is on an agent ends when its processes are proved gone. */
export async function cancelRun(deps: CancelDeps, caller: Caller, runId: RunId, reason: string): Promise<Run> {
  const run = await store.find(deps.db, caller.orgId, runId)
  if (!run) throw new Fault('NOT_FOUND', { run: runId })
  const { descriptor } = await deps.versions.get(run.versionId)
  const moved = await deps.db.begin(async (tx) => {
    await store.leaveQueue(tx, runId)
    const locked = (await lockRuns(tx, [runId])).get(runId)!
    if (!ask(locked, caller, reason)) return undefined
    await saveMoves(tx, [locked])
    await store.noteCancel(tx, runId, reason)
    if (locked.status === 'cancelling') await setDeadline(tx, deps, locked, descriptor.cancelGraceMs)
    return locked
  })
  if (moved) {
    announce(deps, [moved])
    // The agent hears of it now where it is connected here, and with its next heartbeat in any case.
    if (moved.status === 'cancelling' && moved.runnerId) await deps.tellCancels(moved.runnerId)
  }
  return presentRun((await store.find(deps.db, caller.orgId, runId))!)
}

/** Asking twice is no error: the second caller gets the run as it stands. */
function ask(run: Moving, caller: Caller, reason: string): boolean {
  if (run.status === 'cancelling' || run.status === 'cancelled') return false
  if (run.status === 'completed' || run.status === 'failed')
    throw new Fault('RUN_ALREADY_FINISHED', { run: run.id, status: run.status })
  const atRest = run.status !== 'pending' && run.status !== 'running'
  const at = Date.now()
  move(run, 'cancelling', at, { by: caller.id, reason })
  if (atRest) finish(run, 'cancelled', at)
  return true
}

/** Beyond grace and proof an agent that still heartbeats has one lease of time to answer; then its word counts no more. */
async function setDeadline(tx: Tx, deps: CancelDeps, run: Moving, graceMs: number): Promise<void> {
  const inMs = graceMs + deps.config.leaseMs
  await enqueue(tx, 'runs:cancelDeadline', { runId: run.id, epoch: run.epoch }, { inMs, key: `cancel:${run.id}` })
}
