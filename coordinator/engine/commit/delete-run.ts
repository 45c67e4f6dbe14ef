import { Fault } from '@windlass/shared/errors.ts'
import type { OrgId, RunId } from '@windlass/shared/ids.ts'
import { isFinal } from '@windlass/shared/model/run.ts'
import type { Acting } from '../../actor.ts'
import { record } from '../../audit/record.ts'
import type { Db, Sql, Tx } from '../../db/client.ts'
import { enqueue, type Jobs, TURN_MS } from '../../jobs/queue.ts'
import * as store from '../store/erase.ts'

/**
 * Deletes what a finished run was given, returned and told. From the commit on nobody reads it; its log and journal are
 * taken away by a job, as they may be long. Said again it changes nothing.
 */
export async function deleteRun(deps: { db: Db }, caller: Acting, runId: RunId): Promise<void> {
  const { orgId } = caller
  await deps.db.begin(async (tx) => {
    const [run] = await store.lockForErasure(tx, orgId, [runId])
    if (!run) throw new Fault('NOT_FOUND', { run: runId })
    if (run.deletedAt !== null) return
    const { status } = run
    if (!isFinal(status)) throw notFinished(runId, status)
    const child = await store.unfinishedBelow(tx, runId)
    if (child) throw hasUnfinishedChildren(runId, child)
    await record(tx, caller, { action: 'runs.delete', target: { type: 'run', id: runId }, before: { status } })
    await erased(tx, orgId, [run], caller.id)
  })
}

/**
 * Deletes of these runs those that ended before the moment, unless something below them may not have ended. Answers
 * which are deleted after that, also those that were before, and which of them by this. Nobody waits for it but who
 * deletes the same: others go on with what has not ended, and a large tree takes a while.
 */
export async function deleteEnded(
  tx: Tx,
  orgId: OrgId,
  { runIds, before, by }: { runIds: readonly RunId[]; before: Date; by: string },
): Promise<{ deleted: RunId[]; gone: ReadonlySet<RunId> }> {
  const found = await store.findErasable(tx, orgId, runIds)
  const ended = found.filter((run) => !isGone(run) && run.finishedAt !== null && run.finishedAt < before)
  const quiet = await quietOf(
    tx,
    ended.map(({ id }) => id),
  )
  const locked = await store.lockForErasure(tx, orgId, quiet)
  const erasable = locked.filter((run) => !isGone(run))
  await erased(tx, orgId, erasable, by)
  const gone = new Set([...found.filter(isGone), ...locked].map(({ id }) => id))
  return { deleted: erasable.map(({ id }) => id), gone }
}

const isGone = ({ deletedAt }: store.Erasable) => deletedAt !== null

/** Runs below others that are looked at in one go. Behind them only those without any pass. */
const MOST_BELOW = 20_000

/** Those below which all has ended, for sure. Of large trees it is known once what is below is deleted. */
export async function quietOf(sql: Sql, runIds: readonly RunId[], most = MOST_BELOW): Promise<RunId[]> {
  if (runIds.length === 0) return []
  const below = await store.someBelow(sql, runIds, most)
  const loud = below.length < most ? aboveUnfinished(below) : await store.withChildren(sql, runIds)
  return runIds.filter((id) => !loud.has(id))
}

function aboveUnfinished(below: readonly store.Below[]): Set<RunId> {
  const parents = new Map(below.map(({ id, parentRunId }) => [id, parentRunId]))
  const above = new Set<RunId>()
  for (const { id, isFinal: isOver } of below) {
    if (isOver) continue
    for (let at = parents.get(id); at !== undefined && !above.has(at); at = parents.get(at)) above.add(at)
  }
  return above
}

/** Runs that are locked, finished and not deleted become deleted ones, with the transaction. */
async function erased(tx: Tx, orgId: OrgId, runs: readonly store.Erasable[], by: string): Promise<void> {
  if (runs.length === 0) return
  const ids = runs.map(({ id }) => id)
  await store.untag(tx, orgId, ids)
  await store.entomb(tx, orgId, ids, by)
  const erasures = runs.map(({ id, cursor, entries }) => ({
    orgId,
    runId: id,
    most: Math.max(cursor, entries),
    done: 0,
  }))
  await store.addErasures(tx, erasures)
  await enqueueErasures(tx, orgId)
}

function notFinished(run: RunId, status: string): Fault {
  const message = `The run is ${status}: only a finished run is deleted. Cancel it first, or let it end.`
  return new Fault('RUN_NOT_FINISHED', { run, status }, message)
}

function hasUnfinishedChildren(run: RunId, child: RunId): Fault {
  const message = `The run ${child}, which was called below this one, has not finished: cancel it, or let it end.`
  return new Fault('RUN_HAS_LIVE_CHILDREN', { run, child }, message)
}

/** Numbers of one statement. */
const PIECE = 5000
/** Looked up in one go. */
const AT_ONCE = 100

/** One job of an org: hundreds of long logs keep the two workers of all busy for minutes. */
function enqueueErasures(tx: Tx, orgId: OrgId): Promise<void> {
  const key = `erase:${orgId}`
  return enqueue(tx, 'runs:eraseDeleted', [{ payload: { orgId }, inMs: 0, key }])
}

/** Takes away logs and journals of the deleted runs of an org. What is left after a turn is for a further job. */
export async function eraseDeleted(
  { db }: { db: Db },
  { orgId: org }: Jobs['runs:eraseDeleted'],
  turnMs = TURN_MS,
): Promise<void> {
  const orgId = org as OrgId
  const since = performance.now()
  const isOver = () => performance.now() - since >= turnMs
  for (;;) {
    const erasures = await store.nextErasures(db, orgId, AT_ONCE)
    if (erasures.length === 0) return
    for (const one of erasures) {
      await erase(db, one, isOver)
      if (isOver()) return db.begin((tx) => enqueueErasures(tx, orgId))
    }
  }
}

async function erase(db: Db, erasure: store.Erasure, isOver: () => boolean): Promise<void> {
  let { done } = erasure
  while (done < erasure.most) {
    await store.erasePiece(db, { ...erasure, done }, done + PIECE)
    done += PIECE
    if (done < erasure.most && isOver()) return
  }
  await store.endErasure(db, erasure)
}

/** Versions before this one have left a job for each run. */
export async function eraseRun({ db }: { db: Db }, job: Jobs['runs:erase']): Promise<void> {
  const [runId, orgId] = [job.runId as RunId, job.orgId as OrgId]
  await db.begin(async (tx) => {
    await store.addErasures(tx, [{ orgId, runId, most: job.most, done: job.after ?? 0 }])
    await enqueueErasures(tx, orgId)
  })
}
