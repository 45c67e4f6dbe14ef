import type { OrgId, PoolId, RunId, RunnerId, VersionId, WorkflowId } from '@windlass/shared/ids.ts'
import type { Descriptor } from '@windlass/shared/model/descriptor.ts'
import type { Blocked, Loss, Run, RunError, RunStatus, RunTrigger, TriggerKind } from '@windlass/shared/model/run.ts'
import type { SuspendKind } from '@windlass/shared/wire/journal.ts'
import type { NewEvent } from '../../events/store.ts'
import type { JournalChanges } from './journal.ts'

/** An open wait of a run: kind, when it is due (ms since the epoch), the question, the child. */
export type WaitingRow = [kind: SuspendKind, dueAt: number | null, inputId: string | null, childRunId: RunId | null]

/** A run with the names of what it points to, as readers see it. */
export interface RunRow {
  id: RunId
  org: string
  orgId: OrgId
  workflowId: WorkflowId
  workflowSlug: string
  version: number
  versionId: VersionId
  poolId: PoolId
  poolName: string
  status: RunStatus
  attempt: number
  epoch: number
  cursor: number
  runnerId: RunnerId | null
  runnerName: string | null
  triggerKind: TriggerKind
  triggerId: string | null
  triggerActor: string | null
  /** The tick of a schedule that it was started for. */
  tickHow: 'due' | 'caught-up' | 'manual' | null
  tickAt: Date | null
  tickLate: number | null
  environment: string | null
  tags: string[]
  priority: number
  parentRunId: RunId | null
  rootRunId: RunId | null
  retryOf: RunId | null
  error: string | null
  createdAt: Date
  queuedAt: Date
  claimedAt: Date | null
  startedAt: Date | null
  finishedAt: Date | null
  deletedAt: Date | null
  computeMs: string
  tokensInput: string
  tokensOutput: string
  tokensCached: string
  tokensReasoning: string
  costMicros: string
  /** JSON. */
  blocked: string | null
  suspendedAt: Date | null
  /** What is open in the journal of a suspended run. */
  waits: WaitingRow[] | null
  isolation: string | null
  /** The last one. */
  lost: Loss | null
  budget: Descriptor['budget']
}

/** Where a run's process is: executing, being led back to where the last one stood, or waiting without a slot. */
export type ProcessState = 'hot' | 'replaying' | 'parked'

/** How a run loses its process. */
export interface NewLoss {
  what: Loss['what']
  reason: string
  /** That is lost. */
  attempt: number
  /**
   * Whether it counts as a crash once its silent agent is back and was killed meanwhile. A replay that was cut off does
   * not, nor what had not begun as far as anybody heard.
   */
  isCounted: boolean
}

declare const locked: unique symbol

/**
 * A locked run on its way to its next state. All writers of statuses and events meet here, so the rules stand once. The
 * mark is given by the lock alone: nothing else can be saved.
 */
export interface Moving {
  readonly [locked]: true
  readonly id: RunId
  readonly orgId: OrgId
  readonly poolId: PoolId
  readonly versionId: VersionId
  readonly runnerId: RunnerId | null
  readonly epoch: number
  readonly priority: number
  readonly createdAt: Date
  readonly startedAt: Date | null
  /** When it was noted that its time is used up. */
  readonly timedOutAt: Date | null
  /** Since it was given out last it has come to no new wait. */
  readonly isLedBack: boolean
  readonly environment: string | null
  readonly parentRunId: RunId | null
  readonly parentEntry: number | null
  readonly rootRunId: RunId | null
  readonly depth: number
  readonly concurrencyGroup: string | null
  /** What it needs of its runner, as the queue has it. */
  readonly needs: string
  status: RunStatus
  attempt: number
  cursor: number
  seq: number
  /** Null: there is no process. */
  place: ProcessState | null
  /** Number of the last entry in the journal. */
  entries: number
  /** Number of the last one that earlier attempts made and that was forgotten. */
  forgottenEntries: number
  /** Characters of the results in it, the forgotten ones left out. */
  journalChars: number
  crashes: number
  /** Attempts that were cut off because their agent was out of reach. */
  fences: number
  thrown: number
  /** Processes that ended by themselves before they were where the run had stood. */
  replays: number
  /** Those that were lost with their agent or its machine; before it begins, how often an agent was killed first. */
  cutReplays: number
  /** What this attempt has computed, in milliseconds. */
  activeMs: number
  /**
   * The time from the run's creation on, or that of its attempt, is used up; its process is being stopped for that.
   * False while what happened before that is taken.
   */
  timedOut: boolean
  blocked: Blocked | null
  output: string | null
  error: RunError | null
  /** Milliseconds to add to what the run has computed so far. */
  computeMs: number
  started: boolean
  /** More than cursor, seq and entries has changed. */
  isMoved: boolean
  /** It has come to wait just now. */
  suspended: boolean
  /** It goes on just now after having waited. */
  resumed: boolean
  /** Set when the process is gone: the placement is deleted and the run is free for another. */
  released: boolean
  /** Set when it goes back into the queue, to be executed from the top after so long. */
  requeued: { delayMs: number } | null
  /** Set when its process is lost, and the run goes on without it. */
  loss: NewLoss | null
  /** Set when an attempt is over that has not thrown, and there is to be another. */
  lostAttempt: number | null
  /** Why its host could not prepare it. */
  hostFailure: string | null
  /** Its agent was killed before it accepted it: it goes back into the queue at no cost. */
  isUnbegun: boolean
  /** Something was taken from its agent just now. */
  isHeard: boolean
  /** What keeps the program apart, as its agent has said it just now. */
  isolation: string | null
  /** A replay that died is tried again after so long. */
  replayAfterMs: number | null
  /** Pools in whose queue other runs have come because of this one. */
  readonly pokes: Set<PoolId>
  readonly events: NewEvent[]
  readonly journal: JournalChanges
  /** Completes an entry of its own when this run ends. Locked together with it. */
  parent: Moving | undefined
}

/** This version meters neither tokens nor costs. */
const UNSPENT = { spentTokens: 0, spentMicros: 0, reservedMicros: 0 }

const at = (date: Date | null) => date?.getTime() ?? null

/** The run as the API shows it. */
export function presentRun(row: RunRow): Run {
  return {
    id: row.id,
    org: row.org,
    workflow: { id: row.workflowId, slug: row.workflowSlug, version: row.version },
    status: row.status,
    trigger: triggerOf(row),
    environment: row.environment,
    tags: row.tags,
    priority: row.priority,
    attempt: row.attempt,
    parentRunId: row.parentRunId,
    rootRunId: row.rootRunId,
    retryOf: row.retryOf,
    pool: { id: row.poolId, name: row.poolName },
    runner: row.runnerId && row.runnerName !== null ? { id: row.runnerId, name: row.runnerName } : null,
    isolation: row.isolation,
    lost: row.lost,
    waiting: presentWaiting(row),
    blocked: row.blocked === null ? null : (JSON.parse(row.blocked) as Blocked),
    error: row.error === null ? null : (JSON.parse(row.error) as RunError),
    createdAt: row.createdAt.getTime(),
    queuedAt: row.queuedAt.getTime(),
    claimedAt: at(row.claimedAt),
    startedAt: at(row.startedAt),
    finishedAt: at(row.finishedAt),
    deletedAt: at(row.deletedAt),
    computeMs: Number(row.computeMs),
    tokens: {
      input: Number(row.tokensInput),
      output: Number(row.tokensOutput),
      cachedInput: Number(row.tokensCached),
      reasoning: Number(row.tokensReasoning),
    },
    costMicros: Number(row.costMicros),
    budget: row.budget && { ...row.budget, ...UNSPENT },
  }
}

type TriggerRow = Pick<RunRow, 'triggerKind' | 'triggerId' | 'triggerActor' | 'tickHow' | 'tickAt' | 'tickLate'>

/** How a run was started, as its readers and its program see it. */
export function triggerOf(row: TriggerRow): RunTrigger {
  return {
    kind: row.triggerKind,
    ...(row.triggerId ? { id: row.triggerId } : {}),
    ...(row.triggerActor ? { actor: row.triggerActor } : {}),
    ...(row.tickAt && {
      at: row.tickAt.getTime(),
      late: row.tickLate ?? 0,
      catchUp: row.tickHow === 'caught-up',
      manual: row.tickHow === 'manual',
    }),
  }
}

const KIND = { sleeping: 'sleep', awaiting_input: 'input', waiting_for_child: 'child' } as const

/** What a suspended run waits for, as its readers see it. */
function presentWaiting(row: {
  status: RunStatus
  suspendedAt: Date | null
  queuedAt: Date
  waits: WaitingRow[] | null
}): Run['waiting'] {
  if (!(row.status in KIND)) return null
  const waits = row.waits ?? []
  const until = waits.map(([, dueAt]) => dueAt).filter((dueAt) => dueAt !== null)
  const inputId = waits.find(([, , id]) => id !== null)?.[2]
  const childRunIds = waits.map(([, , , id]) => id).filter((id) => id !== null)
  return {
    for: KIND[row.status as keyof typeof KIND],
    since: (row.suspendedAt ?? row.queuedAt).getTime(),
    ...(until.length > 0 && { until: Math.min(...until) }),
    ...(inputId && { inputId: inputId as never }),
    ...(childRunIds.length > 0 && { childRunIds }),
  }
}
