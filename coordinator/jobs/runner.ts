import { EventEmitter } from 'node:events'
import {
  Logger,
  makeWorkerUtils,
  run,
  type Runner,
  type TaskList,
  type WorkerEvents,
  type WorkerPool,
} from 'graphile-worker'
import type { Pool } from 'pg'
import { atMost, pause } from '@windlass/shared/time.ts'
import type { Log } from '@windlass/shared/log.ts'
import { admitRest } from '../engine/commit/admit-rest.ts'
import { cancelForUs } from '../engine/commit/cancel.ts'
import type { RunId } from '@windlass/shared/ids.ts'
import { eraseDeleted, eraseRun } from '../engine/commit/delete-run.ts'
import { type BulkDeps, cleanBulkJobs, workOnOldTurn, workOnTurn } from '../bulk/work.ts'
import { isConnectionLoss } from '../db/client.ts'
import { cleanOrgLogs } from '../events/org-log.ts'
import { cleanWaits } from '../engine/sweep/clean.ts'
import { cleanVariableSets } from '../environments/sets.ts'
import { cleanInbound } from '../inbound/clean.ts'
import { cleanWindows } from '../limits/open.ts'
import { createSample } from '../limits/sample.ts'
import { beginRetention, type RetentionDeps, retentionTurn } from '../retention/work.ts'
import { cleanTokens } from '../runners/register.ts'
import { cleanIdempotencyKeys } from '../idempotency/once.ts'
import { cleanTokenKeys } from '../runs/token-keys.ts'
import { endRuns } from '../schedules/end-runs.ts'
import { cleanSchedules } from '../schedules/schedules.ts'
import { purgeWorkflows } from '../workflows/purge.ts'
import { aborted } from './aborted.ts'
import { cancelDeadline } from './cancel-deadline.ts'
import { cancelDescendants } from './cancel-descendants.ts'
import { freeWorkers } from './dead-workers.ts'
import { CRONTAB } from './crontab.ts'
import { cleanGivenUp } from './given-up.ts'
import type { Jobs } from './queue.ts'
import { keepWorkerLock } from './worker-locks.ts'

/**
 * A worker looks for its next job before it is noted that the last one has ended, and until then no other job of that
 * queue is found. So it is looked again after so long: the note takes some milliseconds, on a busy database more.
 */
const NOTED_MS = [10, 50, 250]
/** A job that comes due is noticed after this long at the latest. */
const POLL_MS = 2000
const RESTART_MS = 1000
/**
 * Jobs that are under way have so long to end; what is left is done again by the next worker. graphile-worker itself
 * may wait for ever: when it could not note that a job had ended, it may count one note too few.
 */
const END_MS = 10_000
/**
 * In groups of what ends in the same moment. Without groups nobody waits for the note that a job has ended: when its
 * connection is lost, the rejection ends the process.
 */
const NOTES = { worker: { completeJobBatchDelay: 0, failJobBatchDelay: 0 } }

/** The tables of the job queue, which our own transactions write to. */
export async function migrateJobs(pgPool: Pool, log: Log): Promise<void> {
  const utils = await makeWorkerUtils({ pgPool, logger: quiet(log) })
  try {
    await utils.migrate()
  } finally {
    await utils.release()
  }
}

async function cleanTriggers(deps: BulkDeps): Promise<void> {
  await cleanInbound(deps)
  await cleanSchedules(deps)
}

type JobDeps = BulkDeps & RetentionDeps & { log: Log }

/** Executes jobs until the signal fires. A lost database ends graphile-worker's runner, so it is started again. */
export async function runJobs(deps: JobDeps, pgPool: Pool, signal: AbortSignal): Promise<void> {
  // What ended workers could not note as done is done again: at once, or before the next worker starts.
  const ended: string[] = []
  const freeEnded = async () => {
    if (ended.length > 0) await freeWorkers(pgPool, ended)
    ended.length = 0
  }
  while (!signal.aborted) {
    let runner: Runner | undefined
    const workers: string[] = []
    let pool: WorkerPool | undefined
    const unlocking = new AbortController()
    let lock: Promise<void> | undefined
    const events: WorkerEvents = new EventEmitter()
    const ending = Promise.withResolvers<void>()
    events.on('pool:create', ({ workerPool }) => {
      workers.push(workerPool.id)
      pool = workerPool
    })
    events.on('pool:gracefulShutdown', () => void pause(END_MS, signal).then(ending.resolve))
    events.on('job:complete', ({ job }) => {
      if (job.job_queue_id !== null) for (const ms of NOTED_MS) setTimeout(() => wake(pool), ms).unref()
    })
    try {
      await freeEnded()
      runner = await run({
        pgPool,
        events,
        preset: NOTES,
        logger: quiet(deps.log),
        noHandleSignals: true,
        pollInterval: POLL_MS,
        concurrency: 2,
        crontab: CRONTAB,
        taskList: tasks(deps),
      })
      lock = keepWorkerLock({ pgPool, log: deps.log }, workers[0]!, unlocking.signal)
      await Promise.race([runner.promise, ending.promise, aborted(signal), lock])
    } catch (error) {
      deps.log.warn('jobs.restart', { error })
    }
    pool = undefined
    if (runner) await atMost(END_MS, runner.stop()).catch((error: unknown) => deps.log.debug('jobs.stop', { error }))
    ended.push(...workers)
    await freeEnded().catch((error: unknown) => deps.log.debug('jobs.free', { error }))
    unlocking.abort()
    await lock
    await pause(RESTART_MS, signal)
  }
}

function tasks(deps: JobDeps): TaskList {
  return {
    'runs:cancelDeadline': (payload) => cancelDeadline(deps, payload as Jobs['runs:cancelDeadline']),
    'runs:cancelBelow': (payload) => cancelDescendants(deps, payload as Jobs['runs:cancelBelow']),
    'runs:cancelDescendants': (payload) => {
      const { orgId, ...parent } = payload as Jobs['runs:cancelDescendants']
      return cancelDescendants(deps, { orgId, parents: [parent] })
    },
    'runs:cancel': (payload) => cancelNamed(deps, payload as Jobs['runs:cancel']),
    'schedules:endRuns': (payload) => endRuns(deps, payload as Jobs['schedules:endRuns']),
    'runs:eraseDeleted': (payload) => eraseDeleted(deps, payload as Jobs['runs:eraseDeleted']),
    'runs:erase': (payload) => eraseRun(deps, payload as Jobs['runs:erase']),
    'runs:admit': (payload) => admitRest(deps, payload as Jobs['runs:admit']),
    'bulkJobs:turn': (payload) => workOnTurn(deps, payload as Jobs['bulkJobs:turn']),
    'runs:bulkTurns': (payload) => workOnOldTurn(deps, (payload as Jobs['runs:bulkTurns'])[0]!),
    'runs:bulk': (payload) => workOnOldTurn(deps, payload as Jobs['runs:bulk']),
    'bulkJobs:clean': async () => cleanBulkJobs(deps),
    'jobs:clean': async () => cleanGivenUp(deps),
    'registrationTokens:clean': async () => void (await cleanTokens(deps)),
    'idempotencyKeys:clean': async () => cleanIdempotencyKeys(deps),
    'variableSets:clean': async () => cleanVariableSets(deps),
    'orgEvents:clean': async () => cleanOrgLogs(deps),
    'tokenKeys:clean': async () => void (await cleanTokenKeys(deps)),
    'workflows:purge': async () => purgeWorkflows(deps),
    'deliveries:clean': async () => cleanTriggers(deps),
    'rateLimits:clean': async () => cleanWindows(deps),
    'waits:clean': async () => cleanWaits(deps),
    'retention:begin': async () => beginRetention(deps),
    'retention:turn': async (payload) => retentionTurn(deps, payload as Jobs['retention:turn']),
  }
}

function cancelNamed(deps: JobDeps, { runIds, reason }: Jobs['runs:cancel']): Promise<void> {
  return cancelForUs(deps, runIds as RunId[], reason)
}

function wake(pool: WorkerPool | undefined): void {
  try {
    pool?.nudge(1)
  } catch {
    // Its workers have ended meanwhile.
  }
}

/**
 * graphile-worker tells of every job at level info; what went wrong is what we want to hear. A restart of the database
 * ends each of its connections, and it says so of each.
 */
function quiet(log: Log): Logger {
  const lines = createSample()
  return new Logger(() => (level, message, meta) => {
    if (level === 'error' && isConnectionLoss(meta?.['error'] ?? meta?.['fatalError'])) {
      const facts = lines('unavailable')
      if (facts) log.warn('jobs.unavailable', { message, ...facts })
    } else if (level === 'error') log.error('jobs.error', { message, ...meta })
    else if (level === 'warning') log.warn('jobs.warning', { message })
    else log.debug('jobs', { message })
  })
}
