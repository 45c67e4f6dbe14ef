import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client'
import { droppedLines } from '@windlass/shared/log-out.ts'
import { Loss } from '@windlass/shared/model/run.ts'
import { ORPHAN_KINDS, type OrphanKind } from '../engine/rules/orphan.ts'
import { queueText } from './queue-text.ts'
import type { DatedFacts } from './facts.ts'

/** What every run passes through, as seen by the one who commits it. */
export const COMMITS = ['triggers', 'deliveries', 'claims', 'acceptances', 'entries'] as const
export type CommitName = (typeof COMMITS)[number]

export const RUNNER_CLOSURES = ['quarantine', 'cordon'] as const
export type RunnerClosure = (typeof RUNNER_CLOSURES)[number]

/** What this process is at the moment of a scrape. */
export interface Presence {
  agents: number
  polls: number
}

export interface Metrics {
  /** Notes a commit of so many items that took so long. */
  committed(name: CommitName, items: number, ms: number): void
  /** A run, or a row that belongs to one, breaks the invariant that every unfinished run has exactly one owner. */
  orphan(kind: OrphanKind, count: number): void
  repaired(count: number): void
  /** We gave a runner no more work, for a while or until its agent is heard of again. */
  runnerClosed(how: RunnerClosure): void
  /** Runners that did not take what a poll had given them. */
  unaccepted(count: number): void
  /** A run lost its process. */
  runLost(what: Loss['what']): void
  /** Counts a gap: for how long nobody could renew leases, or by how much the clock of the database was set. */
  leaseGap(ms: number): void
  /** Everything as Prometheus' text. */
  text(dated: DatedFacts, presence: Presence): Promise<string>
  readonly contentType: string
}

/** Seconds. From a commit on a quiet machine to one that waits for a lock until it gives up. */
const COMMIT_SECONDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10]

/** A registry of its own: two coordinators in one process, as in tests, do not add up. */
export function createMetrics(): Metrics {
  const registry = new Registry()
  const registers = [registry]
  const items = new Counter({
    name: 'windlass_commit_items_total',
    help: 'Runs triggered, claimed and accepted, and entries taken from agents, all of them committed.',
    labelNames: ['commit'],
    registers,
  })
  const seconds = new Histogram({
    name: 'windlass_commit_seconds',
    help: 'How long one commit takes; many items share it.',
    labelNames: ['commit'],
    buckets: COMMIT_SECONDS,
    registers,
  })
  const orphans = new Counter({
    name: 'windlass_orphans_total',
    help: 'Unfinished runs without exactly one owner, and rows of runs that are over. Zero is the only good figure.',
    labelNames: ['kind'],
    registers,
  })
  const repaired = new Counter({
    name: 'windlass_orphans_repaired_total',
    help: 'Those among windlass_orphans_total that were put right.',
    registers,
  })
  const closures = new Counter({
    name: 'windlass_runners_closed_total',
    help: 'Runners that the coordinator itself gave no more work: quarantined, or cordoned for offers that were not accepted.',
    labelNames: ['how'],
    registers,
  })
  const unaccepted = new Counter({
    name: 'windlass_offers_unaccepted_total',
    help: 'How often a runner did not accept in time what it had polled for.',
    registers,
  })
  // A counter that has never counted would be missing, and nobody could tell that from one that is not watched.
  for (const commit of COMMITS) items.inc({ commit }, 0)
  for (const kind of ORPHAN_KINDS) orphans.inc({ kind }, 0)
  for (const how of RUNNER_CLOSURES) closures.inc({ how }, 0)
  countDroppedLines(registers)
  const showFacts = factGauges(registers)
  let watchesProcess = false

  return {
    contentType: registry.contentType,
    committed(commit, count, ms) {
      items.inc({ commit }, count)
      seconds.observe({ commit }, ms / 1000)
    },
    orphan: (kind, count) => orphans.inc({ kind }, count),
    repaired: (count) => repaired.inc(count),
    runnerClosed: (how) => closures.inc({ how }),
    unaccepted: (count) => unaccepted.inc(count),
    ...leaseCounters(registers),
    async text(dated, presence) {
      // From the first scrape on: the watch over the event loop is a timer, which an unwatched installation need not
      // pay for.
      if (!watchesProcess) collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: 20 })
      watchesProcess = true
      showFacts(dated, presence)
      const text = await registry.metrics()
      return `${text}\n${await queueText(dated.facts.queues)}`
    },
  }
}

function countDroppedLines(registers: Registry[]): void {
  // Registered by being made.
  void new Counter({
    name: 'windlass_log_lines_dropped_total',
    help: 'Lines that could not be written to the log, as its disk is full or its reader is gone.',
    registers,
    collect() {
      this.reset()
      this.inc(droppedLines())
    },
  })
}

/** Counters of lost processes and of gaps in which leases could not be renewed. */
function leaseCounters(registers: Registry[]): Pick<Metrics, 'runLost' | 'leaseGap'> {
  const losses = new Counter({
    name: 'windlass_runs_lost_total',
    help: 'Processes that runs lost, by what was lost, as far as that was known at the time.',
    labelNames: ['what'],
    registers,
  })
  const gaps = new Counter({
    name: 'windlass_lease_gaps_total',
    help: 'How often leases were lengthened, as no coordinator could renew them or the clock of the database was set.',
    registers,
  })
  const gapSeconds = new Counter({
    name: 'windlass_lease_gap_seconds_total',
    help: 'How long these gaps were altogether.',
    registers,
  })
  for (const what of Loss.shape.what.options) losses.inc({ what }, 0)
  return {
    runLost: (what) => losses.inc({ what }),
    leaseGap(ms) {
      gaps.inc()
      gapSeconds.inc(ms / 1000)
    },
  }
}

function factGauges(registers: Registry[]): (dated: DatedFacts, presence: Presence) => void {
  const gauge = <L extends string = never>(name: string, help: string, labelNames: L[] = []) =>
    new Gauge({ name: `windlass_${name}`, help, labelNames, registers })
  const age = gauge('facts_age_seconds', 'How long ago the database was asked for the figures of all runs and runners.')
  const runs = gauge('runs', 'Unfinished runs, by status and by where their process is.', ['status', 'place'])
  const overdue = gauge('timers_overdue', 'Timers that are due and have not been fired.')
  const lag = gauge('timers_lag_seconds', 'How late the most overdue timer is.')
  const questions = gauge('inputs_open', 'Questions that wait for an answer.')
  const runners = gauge('runners', 'Registered runners, by whether they are given work.', ['state'])
  const quarantined = gauge('runners_quarantined', 'Runners without new work because preparing runs failed there.')
  const snapshot = gauge(
    'oldest_snapshot_seconds',
    'Age of the oldest transaction for which dead rows stay, as a dump.',
  )
  const agents = gauge('agents_connected', 'Agents with a socket to this coordinator.')
  const polls = gauge('polls_waiting', 'Polls for work that wait at this coordinator.')
  return ({ facts, ageMs }, presence) => {
    age.set(ageMs / 1000)
    runs.reset()
    for (const { status, place, count } of facts.runs) runs.set({ status, place: place ?? 'none' }, count)
    overdue.set(facts.timersOverdue)
    lag.set(facts.timersLagSeconds)
    questions.set(facts.inputsOpen)
    for (const { state, count } of facts.runners) runners.set({ state }, count)
    quarantined.set(facts.runnersQuarantined)
    snapshot.set(facts.oldestSnapshotSeconds)
    agents.set(presence.agents)
    polls.set(presence.polls)
  }
}
