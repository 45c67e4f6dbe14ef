import type { OrgId, PoolId, RunId, RunnerId, VersionId, WorkflowId } from '@windlass/shared/ids.ts'
import type { Run, RunError, RunStatus, TriggerKind } from '@windlass/shared/model/run.ts'
import type { NewEvent } from '../events/store.ts'

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
  computeMs: string
  tokensInput: string
  tokensOutput: string
  tokensCached: string
  tokensReasoning: string
  costMicros: string
}

/** A locked run on its way to its next state. All writers of statuses and events meet here, so the rules stand once. */
export interface Moving {
  readonly id: RunId
  readonly orgId: OrgId
  readonly poolId: PoolId
  readonly versionId: VersionId
  readonly runnerId: RunnerId | null
  readonly epoch: number
  readonly priority: number
  readonly startedAt: Date | null
  status: RunStatus
  attempt: number
  cursor: number
  seq: number
  output: string | null
  error: RunError | null
  /** Milliseconds to add to what the run has computed so far. */
  computeMs: number
  started: boolean
  /** Set when the process is gone: the placement is deleted and the run is free for another. */
  released: boolean
  requeued: boolean
  readonly events: NewEvent[]
}

const at = (date: Date | null) => date?.getTime() ?? null

/** The run as the API shows it. */
export function presentRun(row: RunRow): Run {
  return {
    id: row.id,
    org: row.org,
    workflow: { id: row.workflowId, slug: row.workflowSlug, version: row.version },
    status: row.status,
    trigger: {
      kind: row.triggerKind,
      ...(row.triggerId ? { id: row.triggerId } : {}),
      ...(row.triggerActor ? { actor: row.triggerActor } : {}),
    },
    environment: row.environment,
    tags: row.tags,
    priority: row.priority,
    attempt: row.attempt,
    parentRunId: row.parentRunId,
    rootRunId: row.rootRunId,
    retryOf: row.retryOf,
    pool: { id: row.poolId, name: row.poolName },
    runner: row.runnerId && row.runnerName !== null ? { id: row.runnerId, name: row.runnerName } : null,
    waiting: null,
    error: row.error === null ? null : (JSON.parse(row.error) as RunError),
    createdAt: row.createdAt.getTime(),
    queuedAt: row.queuedAt.getTime(),
    claimedAt: at(row.claimedAt),
    startedAt: at(row.startedAt),
    finishedAt: at(row.finishedAt),
    computeMs: Number(row.computeMs),
    tokens: {
      input: Number(row.tokensInput),
      output: Number(row.tokensOutput),
      cachedInput: Number(row.tokensCached),
      reasoning: Number(row.tokensReasoning),
    },
    costMicros: Number(row.costMicros),
    budget: null,
  }
}
