import type { Log } from '@windlass/shared/log.ts'
import type { OrgId } from '@windlass/shared/ids.ts'
import type { Run } from '@windlass/shared/model/run.ts'
import type { Wake } from '@windlass/shared/wire/agent.ts'
import { type Callers, createCallers } from './accounts/callers.ts'
import type { Config } from './config.ts'
import type { Database, Db } from './db/client.ts'
import { groupCommit, type GroupCommit } from './db/group-commit.ts'
import { openLanes } from './db/lanes.ts'
import { createDownloads, type Downloads } from './downloads/downloads.ts'
import { createEnvironmentNames, type EnvironmentNames } from './environments/names.ts'
import { openSecretKeys, type SecretKeys } from './environments/secret-keys.ts'
import { createVariableSets, type VariableSets } from './environments/sets.ts'
import { type Bell, type BellListener, openBell } from './events/bell.ts'
import { createTails, type Tails } from './events/live.ts'
import { createJudge, type Judge } from './judging/judge.ts'
import type { Limits } from './limits/limits.ts'
import type { BytesInFlight } from './limits/bytes-in-flight.ts'
import { openLimits } from './limits/open.ts'
import type { UnreadBytes } from './limits/unread-bytes.ts'
import { createDispatchers, type Dispatchers } from './dispatch/dispatcher.ts'
import { type Acceptance, type Accepted, commitAcceptances } from './engine/commit/acceptances.ts'
import { giveBack } from './dispatch/claim.ts'
import { commitClaims, MOST_CLAIMED } from './engine/commit/claims.ts'
import { createFactReader, type FactReader } from './metrics/facts.ts'
import { createMetrics, type Metrics } from './metrics/metrics.ts'
import { createDemandReader, type DemandReader } from './runners/demand.ts'
import { noteAccepted, tellIntake } from './runners/intake.ts'
import { createPolls, type Polls } from './runners/polls.ts'
import { createPoolSettings, type PoolSettingsCache } from './runners/pool-settings.ts'
import { createStandings, type Standings } from './runners/standing.ts'
import { type Beat, type Beaten, commitBeats, tellCancels } from './engine/commit/leases.ts'
import { commitDisconnections, type Disconnection } from './agent-link/disconnections.ts'
import { createRunnerVerifier, type RunnerVerifier } from './runners/identity.ts'
import { createSockets, type Sockets } from './agent-link/sockets.ts'
import { tellWakes } from './dispatch/wakes.ts'
import { createTimers, type Timers } from './engine/commit/clock.ts'
import { applyBatches, readBatch } from './engine/commit/apply.ts'
import type { AgentBatch, Applied } from './engine/rules/batch.ts'
import { ENTRY_LANES, openEntries } from './engine/commit/entries.ts'
import { giveUpOn } from './engine/commit/give-up.ts'
import { readRuns } from './runs/read.ts'
import type { RunAddress } from './runs/store.ts'
import type { NewRun } from './engine/store/new-runs.ts'
import { commitTriggers } from './engine/commit/trigger.ts'
import { openRunTokens, type RunTokens } from './runs/token.ts'
import { createRunVersions, type RunVersions } from './engine/commit/versions.ts'
import { openDeploys, type WorkflowBuilder } from './workflows/build.ts'
import { openStored, type Stored } from './workflows/stored.ts'
import { createTargets, createVersions, type Targets, type Versions } from './workflows/targets.ts'

/** Everything long-lived, built once. A verb asks for the part that it uses. */
export interface Deps extends Stored {
  config: Config
  log: Log
  db: Db
  callers: Callers
  builder: WorkflowBuilder
  /** Whether values fit their schemas. */
  judge: Judge
  /** Limits the bytes of large request bodies. */
  bodies: BytesInFlight
  versions: Versions
  /** What runs execute. */
  runVersions: RunVersions
  targets: Targets
  environments: EnvironmentNames
  variableSets: VariableSets
  secretKeys: SecretKeys
  runTokens: RunTokens
  tails: Tails
  unread: UnreadBytes
  bell: Bell
  dispatchers: Dispatchers
  sockets: Sockets
  polls: Polls
  timers: Timers
  metrics: Metrics
  /** How often callers may come. */
  limits: Limits
  facts: FactReader
  /** What waits in pools, and what room there is. */
  demand: DemandReader
  /** What is set for the machines of pools. */
  poolSettings: PoolSettingsCache
  /** Which runners were revoked. */
  standings: Standings
  /** The agent, for machines that are to become one. */
  downloads: Downloads
  /** Queues runs; resolves with the time of creation. */
  triggers: GroupCommit<NewRun, Date>
  /** Reads runs. */
  runReads: GroupCommit<RunAddress, Run | undefined>
  /** Who signs as an installed agent. */
  runnerKeys: RunnerVerifier
  /** Takes heartbeats. */
  beats: GroupCommit<Beat & { orgId: OrgId }, Beaten>
  /** Notes that agents are gone. */
  disconnections: GroupCommit<Disconnection, void>
  /** Makes offers into leases. */
  acceptances: GroupCommit<Acceptance, Accepted>
  /** Takes what agents report. */
  entries: GroupCommit<AgentBatch, Applied>
  /** Tells the agent what it is to cancel, here or by way of the coordinator that it is connected to. */
  tellCancels(runnerId: string): Promise<void>
  /** Tells the agent what one of its runs waited for, in the same way. */
  tellWake(runnerId: string, wake: Wake): void
  /** Looks for everything that programs of this agent wait for and have not been given. */
  tellWakes(runnerId: string): void
}

/** How long a caller waits for a database that has gone away, before he is told. */
const PATIENCE_MS = 20_000
/** An agent that has no answer by then comes again over another connection, perhaps to another coordinator. */
const BEAT_PATIENCE_MS = 5000
/** An input of so many characters counts like one more run: a statement carries some 8 MiB of inputs at most. */
const INPUT_CHARS_PER_RUN = 32 * 1024
/** Number of trigger statements that run at once. */
const TRIGGER_LANES = 2
/** A claim may wait for a locked row: three pools may do so, and the claims of the others go on beside them. */
const CLAIM_LANES = 4

export async function buildDeps(
  config: Config,
  database: Database,
  log: Log,
): Promise<{ deps: Deps; close: () => Promise<void> }> {
  const { db } = database
  const versions = createVersions(db)
  const sockets = createSockets(log)
  const lanes = openRunLanes(database.url, log)
  const tails = createTails(db, log, config.lookAgainMs.readers)
  const metrics = createMetrics()
  const dispatchers = createDispatchers({
    log,
    claim: async ({ id, orgId }, takers) => {
      const startedAt = performance.now()
      const answer = await lanes.claims.run((lane) => commitClaims(lane, id, takers, config.offerMs), orgId)
      metrics.committed('claims', answer.claimed.length, performance.now() - startedAt)
      return answer
    },
    giveBack: (claimed) => void giveBack(deps, claimed),
    lookAgainMs: config.lookAgainMs.polls,
    max: MOST_CLAIMED,
  })
  const deploys = openDeploys(config, log)
  const judge = createJudge({ log })
  const polls = createPolls(db, log)
  const downloads = createDownloads({ folder: `${config.home}/downloads`, given: config.downloads, log })
  const { close: closeLimits, ...limits } = openLimits({
    url: database.url,
    identity: config.limitIdentityPerMin,
    org: config.limitOrgPerMin,
    log,
  })
  const bell = await openBell(db, log, bellListener())
  const deps: Deps = {
    config,
    log,
    db,
    callers: createCallers({ db, log }),
    ...(await openStored(config, log)),
    ...deploys,
    judge,
    versions,
    runVersions: createRunVersions(db, versions),
    targets: createTargets(db, versions),
    environments: createEnvironmentNames(db),
    variableSets: createVariableSets(db),
    secretKeys: openSecretKeys(config, log),
    runTokens: await openRunTokens({ db, log }),
    tails,
    bell,
    dispatchers,
    sockets,
    polls,
    timers: createTimers(log),
    metrics,
    ...limits,
    facts: createFactReader(db),
    demand: createDemandReader(db),
    poolSettings: createPoolSettings(db),
    standings: createStandings(db),
    downloads,
    triggers: groupCommit({
      name: 'trigger',
      log,
      patienceMs: PATIENCE_MS,
      max: 256,
      lanes: TRIGGER_LANES,
      weight: (run) => 1 + run.input.length / INPUT_CHARS_PER_RUN,
      commit: (items) => lanes.triggers.run((lane) => commitTriggers(lane, items)),
      onCommit: (items, ms) => metrics.committed('triggers', items.length, ms),
    }),
    runReads: groupCommit({
      name: 'read runs',
      log,
      // Whoever only reads is told at once that the database is away.
      patienceMs: 0,
      max: 256,
      lanes: 2,
      commit: (asked) => readRuns(db, asked),
    }),
    runnerKeys: createRunnerVerifier(db),
    beats: groupCommit({
      name: 'beats',
      log,
      patienceMs: BEAT_PATIENCE_MS,
      max: 2000,
      lanes: 2,
      weight: ({ holds }) => 1 + holds.length,
      commit: (beats) => commitBeats({ db, versions }, beats),
    }),
    disconnections: groupCommit({
      name: 'disconnections',
      log,
      patienceMs: 0,
      max: 1000,
      commit: (ended) => commitDisconnections(db, ended),
    }),
    acceptances: groupCommit({
      name: 'accept',
      orgOf: ({ orgId }) => orgId,
      log,
      patienceMs: config.offerMs,
      max: 512,
      commit: (items) => lanes.acceptances.run((lane) => commitAcceptances(lane, items, noteAccepted)),
      onCommit: (items, ms) => metrics.committed('acceptances', items.length, ms),
    }),
    entries: openEntries({
      log,
      patienceMs: PATIENCE_MS,
      read: (batch) => readBatch(deps, batch),
      commit: (batches) => lanes.entries.run((lane) => applyBatches({ ...deps, db: lane }, batches)),
      onCommit: (entries, ms) => metrics.committed('entries', entries, ms),
      giveUp: (batch, error) => giveUpOn(deps, batch, error),
    }),
    async tellCancels(runnerId) {
      if (sockets.ids().includes(runnerId)) await tellCancels(deps, [runnerId])
      else bell.ring('runner', runnerId)
    },
    tellWake(runnerId, wake) {
      if (!sockets.tell(runnerId, { t: 'wake', runs: [wake] })) bell.ring('runner', runnerId)
    },
    tellWakes(runnerId) {
      if (sockets.ids().includes(runnerId)) void orders([runnerId])
      else bell.ring('runner', runnerId)
    },
  }
  const close = async () => {
    polls.close()
    sockets.close()
    downloads.close()
    await bell.close().catch((error: unknown) => log.debug('bell.close', { error }))
    await Promise.all([deploys.builder.close(), judge.close()])
    await closeLimits()
    await Promise.all(Object.values(lanes).map((each) => each.close()))
    await database.close()
  }
  return { deps, close }

  function bellListener(): BellListener {
    return {
      rung(topic, id) {
        if (topic === 'run') tails.ring(id)
        else if (topic === 'pool') dispatchers.poke(id as Parameters<Dispatchers['poke']>[0])
        else {
          deps.standings.forget(id)
          deps.runnerKeys.forget(id)
          if (sockets.ids().includes(id)) void orders([id])
        }
      },
      rungAll() {
        tails.ringAll()
        dispatchers.pokeAll()
        void orders(sockets.ids())
      },
    }
  }

  async function orders(runnerIds: string[]): Promise<void> {
    if (runnerIds.length === 0) return
    // With their next heartbeat the agents hear of it in any case.
    await Promise.all([tellCancels(deps, runnerIds), tellWakes(deps, runnerIds), tellIntake(deps, runnerIds)]).catch(
      (error: unknown) => log.warn('orders.failed', { error }),
    )
  }
}

/** Each statement that every run passes through has connections of its own. */
function openRunLanes(url: string, log: Log) {
  const open = (count: number) => openLanes(count, { url, log })
  return {
    triggers: open(TRIGGER_LANES),
    claims: open(CLAIM_LANES),
    acceptances: open(1),
    entries: open(ENTRY_LANES),
  }
}
