import { createLog, type Log } from '@windlass/shared/log.ts'
import { ensureDefaults } from './accounts/bootstrap.ts'
import { putBulkJobsBack } from './bulk/set-back.ts'
import { sweepBulkJobs } from './bulk/sweep.ts'
import type { Verifiers } from './call/access.ts'
import type { Config } from './config.ts'
import { openDatabase, openPgPool } from './db/client.ts'
import { restoredSince } from './db/cluster.ts'
import { warnOfRoom } from './db/fit.ts'
import { migrate } from './db/migrate.ts'
import { keepPartitionsAhead, makePartitionsAhead } from './db/partitions.ts'
import { keepStatistics } from './db/statistics.ts'
import { outgrownBy, watchDatabase } from './db/schema-watch.ts'
import { compose, type Composed } from './compose.ts'
import { clearDrafts, warnOfKeys } from './environments/check-keys.ts'
import { startServer } from './http/server.ts'
import { freeDeadWorkers } from './jobs/dead-workers.ts'
import { migrateJobs, runJobs } from './jobs/runner.ts'
import { putJobsBack } from './jobs/set-back.ts'
import { watchOpenFiles } from './open-files.ts'
import { watchDeadlines } from './runners/deadlines.ts'
import { assertServed } from './runners/revocations.ts'
import { putRunnersBack } from './runners/set-back.ts'
import { putDebouncesBack } from './engine/commit/debounce-set-back.ts'
import { putThrottlesBack } from './engine/commit/throttle-set-back.ts'
import { fireDue } from './engine/commit/fire.ts'
import { stopBehind } from './engine/commit/timers-behind.ts'
import { fireSchedules } from './schedules/fire.ts'
import { putSchedulesBack } from './schedules/set-back.ts'
import { renewNextTicks } from './schedules/zone-data.ts'
import { sweepPlacements } from './engine/sweep/overdue.ts'
import { sweepRuns } from './engine/sweep/sweep.ts'

export interface Coordinator {
  port: number
  deps: Composed['deps']
  /**
   * Why it is to be stopped: a newer program has changed the database so that this one cannot work on it, or the
   * database has been set back.
   */
  readonly outgrown: Promise<string | undefined>
  /** Stops in the reverse order of the start. */
  stop(): Promise<void>
}

/** graphile-worker: one connection listens, one holds the worker's lock, two work, one is spare. */
const JOB_CONNECTIONS = 5
/** What it asks takes milliseconds; a server that has vanished would be waited for a quarter of an hour. */
const JOB_QUERY_MS = 60_000

/** Settings in, a serving coordinator out. */
export async function startCoordinator(
  config: Config,
  log: Log = createLog({ process: 'coordinator' }, config.logLevel),
): Promise<Coordinator> {
  const database = openDatabase({ url: config.databaseUrl, max: config.databaseConnections, log })
  const pgPool = openPgPool(config.databaseUrl, { max: JOB_CONNECTIONS, log, queryTimeoutMs: JOB_QUERY_MS })
  await warnOfRoom(database.db, log, config.databaseConnections)
  const { known } = await migrate(database, { log })
  await makePartitionsAhead(database.db, log)
  await migrateJobs(pgPool, log)
  await ensureDefaults(database.db)
  const { deps, handlers, close } = await compose(config, database, log)
  await warnOfKeys(deps)
  if (config.secretKeyFile !== undefined) await clearDrafts(deps, config.secretKeyFile)
  await renewNextTicks(deps)

  const stopping = new AbortController()
  const loops = [
    sweepPlacements(deps, stopping.signal),
    runJobs(deps, pgPool, stopping.signal),
    freeDeadWorkers({ pgPool, log }, stopping.signal),
    deps.timers.run(() => fireDue(deps, stopping.signal), stopping.signal),
    deps.scheduleTimers.run(() => fireSchedules(deps, stopping.signal), stopping.signal),
    watchForSetBack(deps, stopping.signal),
    sweepRuns(deps, stopping.signal),
    sweepBulkJobs(deps, stopping.signal),
    watchDeadlines(deps, stopping.signal),
    keepPartitionsAhead(deps.db, log, stopping.signal),
    keepStatistics(deps.db, log, stopping.signal),
    deps.reach.run(stopping.signal),
    watchOpenFiles(log, stopping.signal),
  ]
  const looks = [() => outgrownBy(deps.db, known), () => restoredSince(deps.db, deps.cluster)]
  const outgrown = watchDatabase(looks, { signal: stopping.signal })
  const server = await startServer({
    handlers,
    deps,
    log,
    host: config.host,
    port: config.port,
    verify: verifiersOf(deps),
  })
  log('coordinator.serving', { host: config.host, port: server.port })

  return {
    port: server.port,
    deps,
    outgrown,
    async stop() {
      await server.close()
      stopping.abort()
      await Promise.all([...loops, outgrown])
      // What waits to be judged comes again with its agent; waiting for all of it would outlast the stop.
      await deps.judge.close()
      await Promise.all([
        deps.longEnds.stop(),
        stopBehind(deps.timersBehind),
        deps.schedulesBehind.stop(),
        deps.retryWaits.idle(),
        deps.floors.idle(),
        deps.triggers.idle(),
        deps.deliveries.idle(),
        deps.acceptances.idle(),
        deps.entries.idle(),
        deps.disconnections.idle(),
      ])
      await pgPool.end()
      await close()
    },
  }
}

/** Tell who asks, by the token that is presented. */
const verifiersOf = (deps: Composed['deps']): Verifiers => ({
  knows: (as, token) => (as === 'runner' ? deps.runnerKeys : deps.callers).knows(token),
  caller: (token) => deps.callers.verify(token),
  // Without the database none of what an agent asks for can be answered, its upgrade included.
  async runner(token) {
    deps.reach.assert()
    return deps.runnerKeys.verify(token)
  },
  async program(token) {
    const program = await deps.runTokens.verify(token)
    await assertServed(deps, program)
    return program
  },
})

/** What the clock of the database has given while it was ahead is put right once that is. */
const watchForSetBack = (deps: Composed['deps'], signal: AbortSignal) =>
  deps.clockSetBack.run(
    [
      () => putThrottlesBack(deps, signal),
      () => putDebouncesBack(deps, signal),
      () => putSchedulesBack(deps),
      () => putJobsBack(deps, signal),
      () => putBulkJobsBack(deps, signal),
      () => putRunnersBack(deps, signal),
    ],
    signal,
  )
