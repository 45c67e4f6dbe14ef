import type { Run } from '@windlass/shared/model/run.ts'
import type { OrgId } from '@windlass/shared/ids.ts'
import { commitDisconnections } from './agent-link/disconnections.ts'
import type { AgentGroups } from './agent-link/session.ts'
import type { Config } from './config.ts'
import { groupCommit, type GroupCommit } from './db/group-commit.ts'
import type { Lanes } from './db/lanes.ts'
import type { Partitions } from './db/partitions.ts'
import { createSlowCommits } from './db/slow-commits.ts'
import { type Acceptance, type Accepted, commitAcceptances } from './engine/commit/acceptances.ts'
import { lookUpInTurns } from './engine/commit/call-lookups.ts'
import { applyBatches, readBatch } from './engine/commit/apply.ts'
import type { Backlog } from './engine/commit/backlog.ts'
import { openEntries } from './engine/commit/entries.ts'
import { giveUpOn, noteRefused } from './engine/commit/give-up.ts'
import { type Beat, type Beaten, commitBeats } from './engine/commit/leases.ts'
import { commitTriggers, isLimitedRun } from './engine/commit/trigger.ts'
import type { NewRun } from './engine/store/new-runs.ts'
import { commitDeliveries, type Committed, commitUnlessWaiting, type NewDelivery } from './inbound/commit.ts'
import { strangerReads, type StrangerReads } from './limits/stranger-reads.ts'
import type { Needs } from '@windlass/shared/needs.ts'
import { noteAccepted } from './runners/intake.ts'
import { readTokens, type TokenAsk } from './runners/register.ts'
import type { TokenRow } from './runners/store.ts'
import { readRuns } from './runs/read.ts'
import { type Named, openWantings, type Wanting } from './inbound/wanting.ts'
import type { RunAddress } from './runs/store.ts'

/** What many do at the same moment, written or read by one statement. Each org has its turn. */
export interface Groups extends AgentGroups {
  /** Queues runs; resolves with the time of creation. */
  triggers: GroupCommit<NewRun, Date>
  /** Writes what came in at webhooks and connections, with the runs that it starts. */
  deliveries: GroupCommit<NewDelivery, Committed>
  /** Looks at what is wanted of connections. */
  wantings: GroupCommit<Named, Wanting>
  runReads: GroupCommit<RunAddress, Run | undefined>
  /** Looks tokens up by which agents join a pool. */
  tokenReads: StrangerReads<TokenAsk, TokenRow | undefined>
}

/** How long a caller waits for a database that has gone away, before he is told. */
const PATIENCE_MS = 20_000
/** An agent that has no answer by then comes again over another connection, perhaps to another coordinator. */
const BEAT_PATIENCE_MS = 5000
/** An input of so many characters counts like one more run: a statement carries some 8 MiB of inputs at most. */
const INPUT_CHARS_PER_RUN = 32 * 1024
/** Number of trigger statements that run at once. */
export const TRIGGER_LANES = 2
/**
 * Of those for runs of limited concurrency, by the shared connections: one org waits for its locks in one of them, and
 * the others go on in the second.
 */
const LIMITED_LANES = 2
/** Without contention such a commit takes 5 ms. */
const LIMITED_SPARE_MS = 20
/** And of those of heartbeats. */
export const BEAT_LANES = 2
/** Of acceptances: one as a rule, and another while it waits for a placement that its org has locked. */
export const ACCEPTANCE_LANES = 2
const ACCEPTANCE_SPARE_MS = 50

const orgOf = ({ orgId }: { orgId: string }) => orgId

type GroupNeeds = Needs<typeof readBatch | typeof applyBatches | typeof giveUpOn | typeof commitBeats> & {
  config: Config
  partitions: Partitions
  backlog: Backlog
  lanes: Record<'triggers' | 'acceptances' | 'beats' | 'entries', Lanes>
}

export function openGroups(deps: GroupNeeds): Groups {
  const { config, db, lanes, log, metrics, partitions } = deps
  const reading = lookUpInTurns(deps)
  // What an org locks for long by its entries, its heartbeats and acceptances wait for.
  const slow = createSlowCommits()
  return {
    triggers: openTriggers(deps),
    deliveries: openDeliveries(deps),
    wantings: openWantings(deps),
    runReads: groupCommit<RunAddress, Run | undefined>({
      name: 'read runs',
      log,
      orgOf,
      // Whoever only reads is told at once that the database is away.
      patienceMs: 0,
      max: 256,
      lanes: 2,
      slow: createSlowCommits(),
      commit: (asked) => readRuns(db, asked),
    }),
    tokenReads: strangerReads<TokenAsk, TokenRow | undefined>({
      name: 'read registration tokens',
      log,
      read: (asked) => readTokens(db, asked),
    }),
    beats: groupCommit<Beat & { orgId: OrgId }, Beaten>({
      name: 'beats',
      log,
      orgOf,
      patienceMs: BEAT_PATIENCE_MS,
      max: 2000,
      lanes: BEAT_LANES,
      slow,
      weight: ({ holds }) => 1 + holds.length,
      commit: (beats) => lanes.beats.run((lane) => commitBeats({ ...deps, db: lane }, beats)),
    }),
    disconnections: groupCommit({
      name: 'disconnections',
      log,
      patienceMs: 0,
      max: 1000,
      commit: (ended) => commitDisconnections(db, ended),
    }),
    acceptances: groupCommit<Acceptance, Accepted>({
      name: 'accept',
      log,
      orgOf,
      patienceMs: config.offerMs,
      max: 512,
      lanes: ACCEPTANCE_LANES,
      spare: { afterMs: ACCEPTANCE_SPARE_MS, keyOf: ({ runnerId }) => runnerId },
      slow,
      commit: (items) => lanes.acceptances.run((lane) => commitAcceptances(lane, items, noteAccepted)),
      onCommit: (items, ms) => metrics.committed('acceptances', items.length, ms),
    }),
    entries: openEntries({
      log,
      slow,
      backlog: deps.backlog,
      patienceMs: PATIENCE_MS,
      read: (batch) => readBatch(reading, batch),
      commit: (batches) =>
        partitions.atHand(() => lanes.entries.run((lane) => applyBatches({ ...deps, db: lane }, batches))),
      onCommit: (entries, ms) => metrics.committed('entries', entries, ms),
      giveUp: (batch, error) => giveUpOn(deps, batch, error),
      onRefused: (batch, error) => noteRefused(deps, batch, error),
    }),
  }
}

/**
 * Runs of limited concurrency, and throttled ones, wait for the lock of their group, which their org may hold for long:
 * they share no commit with those of other orgs.
 */
function openTriggers({ db, lanes, log, metrics, partitions }: GroupNeeds): GroupCommit<NewRun, Date> {
  const shared = {
    log,
    orgOf,
    patienceMs: PATIENCE_MS,
    max: 256,
    weight: (run: NewRun) => 1 + run.input.length / INPUT_CHARS_PER_RUN,
    onCommit: (items: NewRun[], ms: number) => metrics.committed('triggers', items.length, ms),
  }
  const free = groupCommit<NewRun, Date>({
    ...shared,
    name: 'trigger',
    lanes: TRIGGER_LANES,
    commit: (items) => partitions.atHand(() => lanes.triggers.run((lane) => commitTriggers(lane, items))),
  })
  const limited = groupCommit<NewRun, Date>({
    ...shared,
    name: 'limited trigger',
    isOrgAlone: true,
    lanes: LIMITED_LANES,
    spare: { afterMs: LIMITED_SPARE_MS, keyOf: orgOf },
    commit: (items) => partitions.atHand(() => commitTriggers(db, items)),
  })
  return {
    add: (run) => (isLimitedRun(run) ? limited : free).add(run),
    async idle() {
      await Promise.all([free.idle(), limited.idle()])
    },
  }
}

/** Senders give up after some seconds, and send again. */
const DELIVERY_PATIENCE_MS = 8000

/** An org that has kept others waiting for a key commits apart for this long, that is until locks are given up. */
const APART_MS = 10_000

/** Of workflows that a delivery does not start so many are written in the time of a run. */
const DECIDED_PER_RUN = 8

/** In runs: it may start a hundred, and say of a thousand workflows why it does not start them. */
export function weightOfDelivery(item: Pick<NewDelivery, 'payload' | 'decided' | 'starts'>): number {
  const { payload, decided, starts } = item
  const chars = starts.reduce((sum, { run }) => sum + run.input.length, payload?.length ?? 0)
  return Math.max(1, starts.length) + decided.length / DECIDED_PER_RUN + chars / INPUT_CHARS_PER_RUN
}

/**
 * As with triggers, those that wait for the lock of a group keep nobody else waiting. They hold keys meanwhile; whoever
 * waits for one of these keeps nobody else waiting either.
 */
function openDeliveries({ db, log, metrics, partitions }: GroupNeeds): GroupCommit<NewDelivery, Committed> {
  const waits = (run: NewRun) => isLimitedRun(run) || run.debounce !== null
  const isLimited = ({ starts }: NewDelivery) => starts.some(({ run }) => waits(run))
  const apartUntil = new Map<OrgId, number>()
  const shared = {
    log,
    orgOf,
    patienceMs: DELIVERY_PATIENCE_MS,
    max: 128,
    lanes: LIMITED_LANES,
    weight: weightOfDelivery,
    // One may start a hundred runs that debounce, by five statements each.
    slow: createSlowCommits(),
    onCommit: (items: NewDelivery[], ms: number) => metrics.committed('deliveries', items.length, ms),
  }
  const free = groupCommit<NewDelivery, Committed | undefined>({
    ...shared,
    name: 'delivery',
    commit: (items) => partitions.atHand(() => commitUnlessWaiting(db, items)),
  })
  const limited = groupCommit<NewDelivery, Committed>({
    ...shared,
    name: 'limited delivery',
    isOrgAlone: true,
    spare: { afterMs: LIMITED_SPARE_MS, keyOf: orgOf },
    commit: (items) => partitions.atHand(() => commitDeliveries(db, items)),
  })
  function isApart(orgId: OrgId): boolean {
    const until = apartUntil.get(orgId)
    if (until !== undefined && until < performance.now()) apartUntil.delete(orgId)
    return apartUntil.has(orgId)
  }
  return {
    // `wait`: what waits for others of its org may wait for minutes. The free ones do not.
    async add(item, wait) {
      if (isLimited(item) || isApart(item.orgId)) return limited.add(item, wait)
      const committed = await free.add(item)
      if (committed) return committed
      apartUntil.set(item.orgId, performance.now() + APART_MS)
      return limited.add(item, wait)
    },
    async idle() {
      await Promise.all([free.idle(), limited.idle()])
    },
  }
}
