import { Fault } from '@windlass/shared/errors.ts'
import type { RunId } from '@windlass/shared/ids.ts'
import type { Log } from '@windlass/shared/log.ts'
import type { Db } from '../db/client.ts'
import type { Partitions } from '../db/partitions.ts'
import { createRuns, prepareRun, tellOfNew, type TriggerDeps } from '../engine/commit/trigger.ts'
import { isInTime } from '../in-time.ts'
import { noCredential } from '../stay.ts'
import { retryAsk } from '../runs/retry.ts'
import type { RetryWait, RetryWaits } from './retry-waits.ts'
import type { BareJobRow } from './row.ts'
import * as store from './store.ts'

export type RetryPieceDeps = TriggerDeps & { db: Db; log: Log; partitions: Partitions; retryWaits: RetryWaits }
type Prepared = Awaited<ReturnType<typeof prepareRun>>['run']

/** Each may have an input of a MiB. */
const AT_ONCE = 20
/** A piece takes so long; what is left waits for the next one, as jobs of other orgs wait for this one. */
const PREPARING_MS = 1000
/**
 * An input that is judged longer stands in line behind others of its org, or is slow itself: no worker waits for it,
 * which jobs of other orgs need.
 */
const LATE_MS = 200
/** What passes by itself, and says nothing about the run. */
const PASSING: readonly string[] = ['UNAVAILABLE', 'RATE_LIMITED', 'INTERNAL']

/** Runs whose new ones can be made, and why others cannot. */
interface Piece {
  prepared: Map<RunId, Prepared>
  failures: store.Failure[]
}

/** Answers what the rest of the job has to wait for. */
export async function retryPiece(deps: RetryPieceDeps, job: BareJobRow): Promise<RetryWait | undefined> {
  const waiting = deps.retryWaits.of(job.orgId)
  if (waiting) return waiting
  const ids = await store.takeRuns(deps.db, job.id, AT_ONCE)
  const { late, ...piece } = await prepareAll(deps, job, ids)
  const wait = late && deps.retryWaits.add(job.orgId, retryLate(deps, job, late))
  if (piece.prepared.size + piece.failures.length > 0) await save(deps, job, piece)
  return wait
}

/** The new runs are there exactly if the old ones are taken from the job: each is retried once. */
async function save(deps: RetryPieceDeps, job: BareJobRow, { prepared, failures }: Piece): Promise<void> {
  const created = await deps.partitions.atHand(() =>
    deps.db.begin(async (tx) => {
      // It may have been cancelled meanwhile, also by the end of the key that had asked for it.
      if (!(await store.lockUnderWay(tx, job.id))) return []
      const mine = await store.settle(tx, job.id, [...prepared.keys()])
      await store.noteFailures(tx, job.id, failures)
      const runs = [...prepared].filter(([id]) => mine.has(id)).map(([, run]) => run)
      if (runs.length > 0) await createRuns(tx, runs)
      return runs
    }),
  )
  for (const run of created) tellOfNew(deps, run)
}

interface Late {
  id: RunId
  work: Promise<Prepared>
}

/** Those that are prepared in time, and the one that is late. Throws when what passes by itself stops the first. */
async function prepareAll(
  deps: RetryPieceDeps,
  job: BareJobRow,
  ids: readonly RunId[],
): Promise<Piece & { late?: Late }> {
  const piece: Piece = { prepared: new Map(), failures: [] }
  const since = performance.now()
  for (const id of ids) {
    const work = prepare(deps, job, id)
    if (!(await isInTime(LATE_MS, work))) return { ...piece, late: { id, work } }
    try {
      await note(piece, id, work)
    } catch (error) {
      if (piece.prepared.size + piece.failures.length === 0) throw error
      break
    }
    if (performance.now() - since > PREPARING_MS) break
  }
  return piece
}

async function retryLate(deps: RetryPieceDeps, job: BareJobRow, { id, work }: Late): Promise<void> {
  const piece: Piece = { prepared: new Map(), failures: [] }
  await note(piece, id, work)
  await save(deps, job, piece)
}

/** Throws what passes by itself. */
async function note({ prepared, failures }: Piece, id: RunId, work: Promise<Prepared>): Promise<void> {
  try {
    prepared.set(id, await work)
  } catch (error) {
    if (!(error instanceof Fault) || PASSING.includes(error.code)) throw error
    failures.push({ runId: id, error: error.code })
  }
}

async function prepare(deps: RetryPieceDeps, { orgId, author }: BareJobRow, id: RunId): Promise<Prepared> {
  const ask = await retryAsk(deps, orgId, id, undefined)
  // One at a time: it stands in line however many others of its org do, or it would never have its turn.
  const who = { orgId, actor: author.id, isPatient: true, ...noCredential }
  return (await prepareRun(deps, who, ask)).run
}
