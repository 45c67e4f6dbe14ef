import { Fault } from '@windlass/shared/errors.ts'
import type { RunId } from '@windlass/shared/ids.ts'
import type { Db } from '../db/client.ts'
import type { Partitions } from '../db/partitions.ts'
import { createRuns, prepareRun, tellOfNew, type TriggerDeps } from '../engine/commit/trigger.ts'
import { inTime } from '../in-time.ts'
import { noCredential } from '../stay.ts'
import { retryAsk } from '../runs/retry.ts'
import type { JobRow } from './row.ts'
import * as store from './store.ts'

export type RetryPieceDeps = TriggerDeps & { db: Db; partitions: Partitions }
type Prepared = Awaited<ReturnType<typeof prepareRun>>['run']

/** Each may have an input of a MiB. */
const AT_ONCE = 20
/** What passes by itself, and says nothing about the run. */
const PASSING: readonly string[] = ['UNAVAILABLE', 'RATE_LIMITED', 'INTERNAL']

/** The new runs are there exactly if the old ones are taken from the job: each is retried once. */
export async function retryPiece(deps: RetryPieceDeps, job: JobRow): Promise<void> {
  const ids = await store.takeRuns(deps.db, job.id, AT_ONCE)
  const { prepared, failures } = await prepareAll(deps, job, ids)
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

/**
 * Inputs that are slow to judge take a second each, and stand in line with all else of their org that is judged: what
 * is left waits for the next piece, as jobs of other orgs wait for this one.
 */
const PREPARING_MS = 1000
/** Time for the first, which would else keep its job where it is: a busy machine takes seconds to judge a slow one. */
const FIRST_MS = 10_000

/** Those that can be prepared in time; throws when not even the first is. */
async function prepareAll(deps: RetryPieceDeps, job: JobRow, ids: readonly RunId[]) {
  const prepared = new Map<RunId, Prepared>()
  const failures: store.Failure[] = []
  const since = performance.now()
  for (const id of ids) {
    try {
      const ms = id === ids[0] ? FIRST_MS : PREPARING_MS
      prepared.set(id, await inTime(ms, prepare(deps, job, id)))
    } catch (error) {
      if (error instanceof Fault && !PASSING.includes(error.code)) failures.push({ runId: id, error: error.code })
      else if (prepared.size + failures.length === 0) throw error
      else break
    }
    if (performance.now() - since > PREPARING_MS) break
  }
  return { prepared, failures }
}

async function prepare(deps: RetryPieceDeps, { orgId, author }: JobRow, id: RunId): Promise<Prepared> {
  const ask = await retryAsk(deps, orgId, id, undefined)
  return (await prepareRun(deps, { orgId, actor: author.id, ...noCredential }, ask)).run
}
