import type { OrgId } from '@windlass/shared/ids.ts'
import type { Log } from '@windlass/shared/log.ts'
import { createCallers } from './accounts/callers.ts'
import { createOrders } from './agent-link/orders.ts'
import { createSockets } from './agent-link/sockets.ts'
import { createHandlers } from './api/index.ts'
import { createRetryWaits } from './bulk/retry-waits.ts'
import type { Config } from './config.ts'
import type { Database } from './db/client.ts'
import { openCluster } from './db/cluster.ts'
import { openDatabaseClock } from './db/database-clock.ts'
import { OTHER_CONNECTIONS } from './db/fit.ts'
import { openLanes } from './db/lanes.ts'
import { openReach } from './db/reach.ts'
import { giveBackUnheard } from './dispatch/claim.ts'
import { createDispatchers } from './dispatch/dispatcher.ts'
import { createReturns } from './dispatch/returns.ts'
import { openRestoredHold } from './dispatch/restored-hold.ts'
import { createDownloads } from './downloads/downloads.ts'
import { createPackages } from './downloads/packages.ts'
import { commitClaims, MOST_CLAIMED } from './engine/commit/claims.ts'
import { createTimers } from './engine/commit/clock.ts'
import { createClockSetBack } from './engine/commit/clock-set-back.ts'
import { openFloors } from './engine/commit/floors.ts'
import { createBacklog } from './engine/commit/backlog.ts'
import { createGrace } from './engine/commit/grace.ts'
import { openLongEnds } from './engine/commit/long-ends.ts'
import { openTimersBehind } from './engine/commit/timers-behind.ts'
import { ENTRY_LANES } from './engine/commit/entries.ts'
import { openHolders } from './engine/commit/holders.ts'
import { createRunVersions } from './engine/commit/versions.ts'
import { createEnvironmentNames } from './environments/names.ts'
import { openSecretKeys } from './environments/secret-keys.ts'
import { createVariableSets } from './environments/sets.ts'
import { createDownloadSeats } from './limits/download-seats.ts'
import { createPartitions } from './db/partitions.ts'
import { type BellListener, createBell } from './events/bell.ts'
import { createTails, READ_SEATS } from './events/live.ts'
import { createOrgLogs } from './events/org-log.ts'
import { ACCEPTANCE_LANES, BEAT_LANES, openGroups, TRIGGER_LANES } from './groups.ts'
import { createJudge } from './judging/judge.ts'
import { createSourceOwners } from './inbound/owners.ts'
import { createUnverifiedCounts } from './inbound/unverified.ts'
import { openInbound } from './limits/inbound.ts'
import { openLimits } from './limits/open.ts'
import { openOrgTurns } from './limits/org-turns.ts'
import { createPace } from './pace.ts'
import { createSeats } from './limits/seats.ts'
import { createFactReader } from './metrics/facts.ts'
import { createMetrics } from './metrics/metrics.ts'
import { createDemandReader } from './runners/demand.ts'
import { createRunnerVerifier } from './runners/identity.ts'
import { createRunnerNotes } from './runners/notes.ts'
import { createPoolSettings } from './runners/pool-settings.ts'
import { silentMs } from './runners/settings.ts'
import { createPolls } from './runners/polls.ts'
import { createRevocations } from './runners/revocations.ts'
import { openRunTokens } from './runs/token.ts'
import { openSchedulesBehind } from './schedules/behind.ts'
import { openDeploys } from './workflows/build.ts'
import { openStored } from './workflows/stored.ts'
import { createTargets, createVersions } from './workflows/targets.ts'
import { createTermsReader } from './workflows/terms.ts'

/** A claim may wait for a locked row: three pools may do so, and the claims of the others go on beside them. */
const CLAIM_LANES = 4

/** Everything long-lived. Each phase uses what the one before has built. */
export type Composed = Awaited<ReturnType<typeof compose>>

export async function compose(config: Config, database: Database, log: Log) {
  const stores = await openStores(config, database, log)
  const services = openServices(stores)
  const engine = { ...stores, ...services, runnerNotes: createRunnerNotes({ ...stores, ...services }) }
  const deps = { ...engine, ...openGroups(engine) }
  deps.dispatchers.onUnclaimed((claimed) => void giveBackUnheard(deps, claimed))
  await deps.bell.listen(listenerOf(deps))
  return { deps, handlers: createHandlers(deps), close: () => close(deps, database) }
}

/** What the database and the disk hold, and what is kept in memory of it. */
async function openStores(config: Config, database: Database, log: Log) {
  const { db, url } = database
  const versions = createVersions(db)
  const versionTerms = createTermsReader(db)
  const lanes = openRunLanes(url, log)
  const poolSettings = createPoolSettings(lanes.beats)
  const databaseClock = await openDatabaseClock({ db, log })
  const { close: closeLimits, ...limits } = openLimits({
    url,
    identity: config.limitIdentityPerMin,
    org: config.limitOrgPerMin,
    deliveries: config.limitDeliveriesPerMin,
    log,
  })
  return {
    config,
    log,
    db,
    /** Before the keys of run tokens are made: a new epoch forgets those that are there. */
    cluster: await openCluster(db, log),
    restoredHold: await openRestoredHold({ db, config, log, poolSettings }),
    lanes,
    databaseClock,
    /** Whether agents can be served. */
    reach: openReach({ url, log, beats: lanes.beats, wanted: config.databaseConnections + OTHER_CONNECTIONS }),
    ...(await openStored(config, log)),
    ...limits,
    closeLimits,
    ...openInbound(config, createSourceOwners({ db, log })),
    countUnverified: createUnverifiedCounts(),
    turns: openOrgTurns(),
    /** Of batches of runs. */
    batchPace: createPace(),
    callers: createCallers({ db, log }),
    /** Who signs as an installed agent. */
    runnerKeys: createRunnerVerifier(db),
    runTokens: await openRunTokens({ db, log, databaseClock }),
    partitions: createPartitions(db, log),
    versionTerms,
    runVersions: createRunVersions(db, versions),
    holders: openHolders(db, log),
    targets: createTargets(db, versions, versionTerms),
    environments: createEnvironmentNames(db),
    variableSets: createVariableSets(db),
    secretKeys: openSecretKeys(config, log),
    poolSettings,
    revocations: createRevocations(db),
    /** What waits in pools, and what room there is. */
    demand: createDemandReader(db),
    facts: createFactReader(db),
  }
}

/**
 * Each of these statements takes milliseconds. A server that has vanished is noticed 2 s later: before an agent that is
 * not answered kills its runs (50 s), and before the patience of a trigger is over (20 s).
 */
const TRIGGER_MS = 15_000
const CLAIM_MS = 10_000
const BEAT_MS = 8_000

/** Each statement that every run passes through has connections of its own. */
function openRunLanes(url: string, log: Log) {
  const open = (count: number, statementTimeoutMs?: number) => openLanes(count, { url, log, statementTimeoutMs })
  return {
    triggers: open(TRIGGER_LANES, TRIGGER_MS),
    claims: open(CLAIM_LANES, CLAIM_MS),
    acceptances: open(ACCEPTANCE_LANES, CLAIM_MS),
    // Nothing else may hold up a lease.
    beats: open(BEAT_LANES, BEAT_MS),
    entries: open(ENTRY_LANES),
  }
}

type Stores = Awaited<ReturnType<typeof openStores>>

/** What lives in this process: connections, those who wait, child processes. */
function openServices(stores: Stores) {
  const { config, log, db, databaseClock, lanes, restoredHold } = stores
  const startedAt = performance.now()
  const metrics = createMetrics()
  const sockets = createSockets(log)
  const bell = createBell(db, log)
  const backlog = createBacklog()
  const timers = createTimers(log, 'timers', backlog)
  /** When schedules are looked at next. */
  const scheduleTimers = createTimers(log, 'schedules', backlog)
  const floors = openFloors({ db, log, databaseClock })
  return {
    metrics,
    sockets,
    bell,
    ...createOrders({ ...stores, sockets, bell }),
    tails: createTails(log, config.lookAgainMs.readers, createSeats(READ_SEATS)),
    orgLogs: createOrgLogs(db),
    timers,
    floors,
    longEnds: openLongEnds({ db, log }),
    timersBehind: openTimersBehind({ db, log, timers }),
    scheduleTimers,
    clockSetBack: createClockSetBack(log),
    grace: createGrace(config),
    backlog,
    // At a start all agents have yet to come back, though some were heard a moment ago.
    silentMs: () => Math.min(silentMs({ config, sockets }), performance.now() - startedAt),
    schedulesBehind: openSchedulesBehind({ log, scheduleTimers }),
    retryWaits: createRetryWaits(log),
    polls: createPolls(db, log),
    returns: createReturns(log),
    dispatchers: createDispatchers({
      log,
      claim: async ({ id, orgId, round }, candidates) => {
        if ((await restoredHold.restMs(id)) > 0) return { claimed: [], isMore: false }
        const startedAt = performance.now()
        const ask = { candidates, offerMs: config.offerMs, round }
        const answer = await floors.queues.begin(id, (floor) =>
          lanes.claims.run((lane) => commitClaims(lane, id, { ...ask, floor }), orgId),
        )
        metrics.committed('claims', answer.claimed.length, performance.now() - startedAt)
        return answer
      },
      lookAgainMs: config.lookAgainMs.polls,
      max: MOST_CLAIMED,
    }),
    /** Whether values fit their schemas. */
    judge: createJudge({ log }),
    ...openDeploys(config, log),
    downloadSeats: createDownloadSeats(),
    /** The agent, for machines that are to become one. */
    downloads: createDownloads({ folder: `${config.home}/downloads`, given: config.downloads, log }),
    /** The SDK and the command, for npm. */
    packages: createPackages({ folder: `${config.home}/packages`, log }),
  }
}

type Services = Stores & ReturnType<typeof openServices>

/** What other coordinators tell. */
function listenerOf({
  tails,
  dispatchers,
  targets,
  revocations,
  runnerKeys,
  backlog,
  tellAll,
  tellEverybody,
}: Services): BellListener {
  return {
    rung(topic, id) {
      if (topic === 'run' || topic === 'org') tails.ring(id)
      else if (topic === 'workflows') targets.forget(id as OrgId)
      else if (topic === 'pool') dispatchers.poke(id as Parameters<typeof dispatchers.poke>[0])
      else {
        revocations.forget(id)
        runnerKeys.forget(id)
        tellAll([id])
      }
    },
    // What is remembered of workflows and runners is looked up anew after seconds in any case.
    rungAll(topic) {
      if (topic === 'run' || topic === 'org') tails.ringAll()
      else if (topic === 'pool') dispatchers.pokeAll()
      else if (topic === 'runner') tellEverybody()
    },
    // A coordinator that asks the database nothing in an outage notices it by this connection alone.
    lost: () => backlog.lost(),
  }
}

async function close(services: Services, database: Database): Promise<void> {
  const { polls, sockets, downloads, packages, bell, log, builder, judge, closeLimits, lanes, reach } = services
  polls.close()
  sockets.close()
  downloads.close()
  packages.close()
  await bell.close().catch((error: unknown) => log.debug('bell.close', { error }))
  await Promise.all([builder.close(), judge.close()])
  await closeLimits()
  await Promise.all([...Object.values(lanes), reach].map((each) => each.close()))
  await database.close()
}
