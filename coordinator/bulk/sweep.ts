import type { Log } from '@windlass/shared/log.ts'
import { probe } from '@windlass/shared/probe.ts'
import { pause } from '@windlass/shared/time.ts'
import type { Config } from '../config.ts'
import type { Db } from '../db/client.ts'
import * as store from './store-turns.ts'
import { enqueueTurn } from './turns.ts'

interface SweepDeps {
  db: Db
  log: Log
}

/** Looks for jobs that nobody would go on with. A job and its turn are written together: what is found is a bug. */
export async function sweepBulkJobs(deps: SweepDeps & { config: Config }, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    await pause(deps.config.sweepRunsMs, signal)
    if (signal.aborted) return
    try {
      await sweepBulkJobsOnce(deps)
      probe('sweep.done', { of: 'bulkJobs' })
    } catch (error) {
      deps.log.warn('bulk.sweep.failed', { error })
    }
  }
}

/** Several coordinators may find the same: an org has one turn to come, however often it is put in. */
export async function sweepBulkJobsOnce({ db, log }: SweepDeps): Promise<void> {
  for (const orgId of await store.orgsWithoutTurn(db)) {
    await db.begin((tx) => enqueueTurn(tx, orgId))
    log.warn('bulk.turn.missing', { orgId })
  }
}
