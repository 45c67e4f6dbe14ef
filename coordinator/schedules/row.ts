import type { EnvironmentId, OrgId, RunId, ScheduleId, WorkflowId } from '@windlass/shared/ids.ts'
import type { CatchUp, Overlap } from '@windlass/shared/model/late-rules.ts'
import type { RunStatus } from '@windlass/shared/model/run.ts'
import type { ScheduleGap } from '@windlass/shared/model/schedule.ts'

/** What whoever makes a schedule says of it. Times are milliseconds since the epoch. */
export interface Content {
  name: string | null
  kind: 'cron' | 'rate' | 'at'
  cron: string | null
  timezone: string | null
  rateMs: number | null
  anchorAt: number
  at: number | null
  environment: string | null
  environmentId: EnvironmentId | null
  /** JSON text. */
  input: string
  jitterMs: number
  catchUp: CatchUp
  catchUpWindowMs: number
  overlap: Overlap
  enabled: boolean
}

/** What of a schedule decides when it ticks, and which of its ticks start runs. */
export type Rule = Pick<
  Content,
  'kind' | 'cron' | 'timezone' | 'rateMs' | 'anchorAt' | 'at' | 'jitterMs' | 'catchUp' | 'catchUpWindowMs' | 'overlap'
>

/** The rule of before a change. Ticks behind `since` up to `until`, when it was changed, are to be settled by it. */
export type EarlierRule = Rule & { since: number; until: number }

/** How far a schedule has come. */
export interface ScheduleState {
  settledAt: number
  nextAt: number | null
  dueAt: number | null
  restsSince: number | null
  restsBecause: 'paused' | 'workflow-deleted' | null
  stoppedBecause: string | null
  endedAt: number | null
  endedBecause: 'over' | 'not-in-descriptor' | null
  gapId: string | null
  /** The oldest first. While there are any, `nextAt` is a tick of the first. */
  earlier: readonly EarlierRule[]
}

export interface ScheduleRow extends Content, ScheduleState {
  id: ScheduleId
  orgId: OrgId
  org: string
  workflowId: WorkflowId
  workflowSlug: string
  isWorkflowDeleted: boolean
  source: 'api' | 'descriptor'
  identity: string | null
  isSetByHand: boolean
  pausedBy: string | null
  createdAt: number
  createdBy: string
  updatedAt: number
  revision: number
  /** Since when its tick waits for an agent, see held.ts. */
  heldSince: number | null
  /** By the clock of the database. */
  now: number
  /** The last entry of its gaps, while nothing has fired since. */
  gap: Pick<GapRow, 'outcome' | 'reason' | 'message' | 'runId'> | null
  /** The newest run that it has started. */
  last: { id: RunId; status: RunStatus; at: number } | null
}

export interface GapRow {
  id: string
  scheduleId: ScheduleId
  orgId: OrgId
  outcome: ScheduleGap['outcome']
  reason: ScheduleGap['reason']
  message: string
  runId: RunId | null
  from: number
  to: number
  count: number
  caughtUp: number
  firedAt: number | null
}

export type NewGap = Omit<GapRow, 'id'>
