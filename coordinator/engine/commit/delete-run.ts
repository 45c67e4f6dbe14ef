import { Fault } from '@windlass/shared/errors.ts'
import type { OrgId, RunId } from '@windlass/shared/ids.ts'
import { isFinal } from '@windlass/shared/model/run.ts'
import type { Acting } from '../../actor.ts'
import { record } from '../../audit/record.ts'
import type { Db, Tx } from '../../db/client.ts'
import { enqueue, type Jobs, TURN_MS } from '../../jobs/queue.ts'
import * as store from '../store/erase.ts'

/**
 * Deletes what a finished run was given, returned and told. From the commit on nobody reads it; its log and journal are
 * taken away by a job, as they may be long. Said again it changes nothing.
 */
export async function deleteRun(deps: { db: Db }, caller: Acting, runId: RunId): Promise<void> {
  const { orgId } = caller
  await deps.db.begin(async (tx) => {
    const run = await store.lockForErasure(tx, orgId, runId)
    if (!run) throw new Fault('NOT_FOUND', { run: runId })
    if (run.deletedAt !== null) return
    const { status, cursor, entries } = run
    if (!isFinal(status)) throw notFinished(runId, status)
    const child = await store.unfinishedDescendant(tx, runId)
    if (child) throw hasUnfinishedChildren(runId, child)
    await store.untag(tx, orgId, runId)
    await store.entomb(tx, orgId, runId, caller.id)
    const payload = { runId, orgId, most: Math.max(cursor, entries) }
    await enqueueErasure(tx, payload)
    await record(tx, caller, { action: 'runs.delete', target: { type: 'run', id: runId }, before: { status } })
  })
}

function notFinished(run: RunId, status: string): Fault {
  const message = `The run is ${status}: only a finished run is deleted. Cancel it first, or let it end.`
  return new Fault('RUN_NOT_FINISHED', { run, status }, message)
}

function hasUnfinishedChildren(run: RunId, child: RunId): Fault {
  const message = `The run ${child}, which was called below this one, has not finished: cancel it, or let it end.`
  return new Fault('RUN_HAS_LIVE_CHILDREN', { run, child }, message)
}

/** Rows of one statement. */
const PIECE = 5000

/** One after the other of an org: hundreds of long logs keep the two workers of all busy for minutes. */
function enqueueErasure(tx: Tx, payload: Jobs['runs:erase']): Promise<void> {
  const { runId, orgId } = payload
  return enqueue(tx, 'runs:erase', [{ payload, inMs: 0, key: `erase:${runId}`, queue: `erase ${orgId}` }])
}

/** Takes away what was in the log and the journal of a deleted run, in turns; again where it was cut off. */
export async function eraseRun({ db }: { db: Db }, job: Jobs['runs:erase'], turnMs = TURN_MS): Promise<void> {
  const runId = job.runId as RunId
  const since = performance.now()
  for (let after = job.after ?? 0; after < job.most;) {
    await store.erasePiece(db, runId, { after, upTo: after + PIECE })
    after += PIECE
    if (performance.now() - since >= turnMs && after < job.most) {
      const rest = { ...job, after }
      await db.begin((tx) => enqueueErasure(tx, rest))
      return
    }
  }
  await store.eraseCopies(db, job.orgId as OrgId, runId)
}
