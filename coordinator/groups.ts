import type { Run } from '@windlass/shared/model/run.ts'
import type { OrgId } from '@windlass/shared/ids.ts'
import { commitDisconnections } from './agent-link/disconnections.ts'
import type { AgentGroups } from './agent-link/session.ts'
import type { Config } from './config.ts'
import { groupCommit, type GroupCommit } from './db/group-commit.ts'
import type { Lanes } from './db/lanes.ts'
import { type Acceptance, type Accepted, commitAcceptances } from './engine/commit/acceptances.ts'
import { applyBatches, readBatch } from './engine/commit/apply.ts'
import { openEntries } from './engine/commit/entries.ts'
import { giveUpOn } from './engine/commit/give-up.ts'
import { type Beat, type Beaten, commitBeats } from './engine/commit/leases.ts'
import { commitTriggers } from './engine/commit/trigger.ts'
import type { NewRun } from './engine/store/new-runs.ts'
import type { Needs } from './needs.ts'
import { noteAccepted } from './runners/intake.ts'
import { readRuns } from './runs/read.ts'
import type { RunAddress } from './runs/store.ts'

/** What many do at the same moment, written or read by one statement. Each org has its turn. */
export interface Groups extends AgentGroups {
  /** Queues runs; resolves with the time of creation. */
  triggers: GroupCommit<NewRun, Date>
  runReads: GroupCommit<RunAddress, Run | undefined>
}

/** How long a caller waits for a database that has gone away, before he is told. */
const PATIENCE_MS = 20_000
/** An agent that has no answer by then comes again over another connection, perhaps to another coordinator. */
const BEAT_PATIENCE_MS = 5000
/** An input of so many characters counts like one more run: a statement carries some 8 MiB of inputs at most. */
const INPUT_CHARS_PER_RUN = 32 * 1024
/** Number of trigger statements that run at once. */
export const TRIGGER_LANES = 2
/** And of those of heartbeats. */
export const BEAT_LANES = 2

const orgOf = ({ orgId }: { orgId: string }) => orgId

type GroupNeeds = Needs<typeof readBatch | typeof applyBatches | typeof giveUpOn | typeof commitBeats> & {
  config: Config
  lanes: Record<'triggers' | 'acceptances' | 'beats' | 'entries', Lanes>
}

export function openGroups(deps: GroupNeeds): Groups {
  const { config, db, lanes, log, metrics } = deps
  return {
    triggers: groupCommit<NewRun, Date>({
      name: 'trigger',
      log,
      orgOf,
      patienceMs: PATIENCE_MS,
      max: 256,
      lanes: TRIGGER_LANES,
      weight: (run) => 1 + run.input.length / INPUT_CHARS_PER_RUN,
      commit: (items) => lanes.triggers.run((lane) => commitTriggers(lane, items)),
      onCommit: (items, ms) => metrics.committed('triggers', items.length, ms),
    }),
    runReads: groupCommit<RunAddress, Run | undefined>({
      name: 'read runs',
      log,
      orgOf,
      // Whoever only reads is told at once that the database is away.
      patienceMs: 0,
      max: 256,
      lanes: 2,
      commit: (asked) => readRuns(db, asked),
    }),
    beats: groupCommit<Beat & { orgId: OrgId }, Beaten>({
      name: 'beats',
      log,
      orgOf,
      patienceMs: BEAT_PATIENCE_MS,
      max: 2000,
      lanes: BEAT_LANES,
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
  }
}
