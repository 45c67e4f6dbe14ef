import type { JobId, OrgId, RunId } from '@windlass/shared/ids.ts'
import type { Log } from '@windlass/shared/log.ts'
import { RUN_STATUSES } from '@windlass/shared/model/run.ts'
import { probe } from '@windlass/shared/probe.ts'
import type { WorkflowId } from '@windlass/shared/ids.ts'
import { record } from '../audit/record.ts'
import type { Db } from '../db/client.ts'
import { type Jobs, TURN_MS } from '../jobs/queue.ts'
import { searchRuns } from '../runs/read.ts'
import { type CancelPieceDeps, cancelPiece } from './cancel-piece.ts'
import { type RetryPieceDeps, retryPiece } from './retry-piece.ts'
import type { RetryWait } from './retry-waits.ts'
import type { BareJobRow } from './row.ts'
import { isTakenBy } from './start.ts'
import * as store from './store.ts'
import * as turns from './store-turns.ts'
import { AGAIN_MS, enqueueTurn, putFirst, putOff } from './turns.ts'

export type BulkDeps = CancelPieceDeps & RetryPieceDeps & { log: Log }

/** Found by one statement. */
const FOUND_AT_ONCE = 1000
/** Runs at which one statement looks: as many as it can in about this time, of few at the beginning of each turn. */
const LOOKED_AT = { first: 500, least: 100, most: 20_000 }
const STRETCH_MS = 200

/** A wait: it goes on when that is done. */
type Turn = 'over' | 'goes on' | 'failed' | RetryWait

/** A turn of an org: one of its jobs has it. The others come next, and then it again. */
export async function workOnTurn(deps: BulkDeps, { orgId: org }: Jobs['bulkJobs:turn']): Promise<void> {
  const orgId = org as OrgId
  const id = await turns.takeTurn(deps.db, orgId)
  if (!id) return
  const turn = await workOnBulk(deps, id)
  await deps.db.begin(async (tx) => {
    // It is tried again, until the deadline; and when whoever waits is killed meanwhile.
    if (turn === 'failed' || typeof turn === 'object') await putOff(tx, { id, orgId }, AGAIN_MS)
    if (await turns.hasTurn(tx, orgId)) await enqueueTurn(tx, orgId)
  })
  // What was put off comes at once; not before it is put off.
  if (typeof turn === 'object') deps.retryWaits.after(turn, () => deps.db.begin((tx) => putFirst(tx, { id, orgId })))
}

/** Versions before this one have left turns that name their jobs. */
export async function workOnOldTurn({ db }: { db: Db }, { jobId }: Jobs['runs:bulk']): Promise<void> {
  const job = await store.findBare(db, jobId as JobId)
  if (job) await db.begin((tx) => enqueueTurn(tx, job.orgId))
}

/** One turn of a job. Two of one job at once do each piece once. */
export async function workOnBulk(deps: BulkDeps, jobId: JobId): Promise<Turn> {
  const since = performance.now()
  let lookAt = LOOKED_AT.first
  do {
    const job = await store.findBare(deps.db, jobId)
    if (!job || job.finishedAt !== null || (await end(deps, job))) return 'over'
    try {
      const wait = job.isListed ? await actOnPiece(deps, job) : undefined
      if (wait) return wait
      if (!job.isListed) lookAt = await findPiece(deps.db, job, lookAt)
    } catch (error) {
      deps.log.warn('bulk.failed', { jobId, error })
      return 'failed'
    }
    probe('bulk.piece', { jobId })
  } while (performance.now() - since < TURN_MS)
  return 'goes on'
}

/**
 * Runs that are older than those looked at before. Answers at how many the next stretch looks: one that takes long, as
 * on a cold disk, would hold a worker beyond its turn.
 */
async function findPiece(db: Db, job: BareJobRow, most: number): Promise<number> {
  const { orgId, kind, filter, createdAt, listedTo } = job
  const { workflow, createdBefore, status, all: _, ...rest } = filter
  const ask = {
    ...rest,
    orgId,
    status: (status ?? RUN_STATUSES).filter((one) => isTakenBy(kind, one)),
    workflowId: workflow as WorkflowId | undefined,
    root: kind === 'bulk-retry' ? (true as const) : undefined,
    createdBefore: Math.min(createdBefore ?? Infinity, createdAt.getTime()),
    before: listedTo ?? undefined,
    limit: FOUND_AT_ONCE,
  }
  const since = performance.now()
  const found = await searchRuns(db, ask, most)
  const tookMs = performance.now() - since
  await db.begin((tx) => store.addFound(tx, job, found))
  if (tookMs > STRETCH_MS) return Math.max(LOOKED_AT.least, Math.round(most / 2))
  return tookMs < STRETCH_MS / 2 ? Math.min(LOOKED_AT.most, most * 2) : most
}

/** Answers what the rest of the job has to wait for. */
async function actOnPiece(deps: BulkDeps, job: BareJobRow): Promise<RetryWait | undefined> {
  if (job.kind === 'bulk-retry') return retryPiece(deps, job)
  await cancelPiece(deps, job)
  return undefined
}

/** True: it has ended, and what it did is recorded. */
async function end({ db, log }: BulkDeps, job: BareJobRow): Promise<boolean> {
  const isDone = job.isListed && (job.dryRun || (await nextOf(db, job)).length === 0)
  if (!isDone && !job.isOverdue) return false
  const { id, author, kind, dryRun, createdAt } = job
  await db.begin(async (tx) => {
    const error = 'It was not done by its deadline; what it has done stays done.'
    const isMine = await store.finish(tx, id, isDone ? { status: 'completed' } : { status: 'failed', error })
    if (!isMine || dryRun) return
    const { matched, done, failed, status } = (await store.findBare(tx, id))!
    const target = { type: 'job', id }
    await record(tx, author, { action: 'jobs.finish', target, after: { kind, status, matched, done, failed } })
  })
  log('bulk.finished', { jobId: id, kind, tookMs: Date.now() - createdAt.getTime() })
  probe('bulk.finished', { jobId: id })
  return true
}

const nextOf = (db: Db, { id }: BareJobRow): Promise<RunId[]> => store.takeRuns(db, id, 1)

/** What jobs have left that are over. */
export async function cleanBulkJobs({ db }: { db: Db }): Promise<void> {
  const AT_ONCE = 5000
  while ((await store.clean(db, AT_ONCE)) === AT_ONCE);
}
