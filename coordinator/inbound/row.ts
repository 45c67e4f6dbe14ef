import type { EnvironmentId, OrgId, RunId, WorkflowId } from '@windlass/shared/ids.ts'
import type { BearerScheme, ConnectionKind, HmacScheme, Source } from '@windlass/shared/model/connection.ts'
import type { DeliveryOutcome } from '@windlass/shared/model/delivery.ts'
import type { Descriptor } from '@windlass/shared/model/descriptor.ts'
import type { WebhookAuth } from '@windlass/shared/model/webhook.ts'

export interface WebhookRow {
  id: string
  orgId: OrgId
  workflowId: WorkflowId
  slug: string
  auth: WebhookAuth
  /** Null: the descriptor says nothing of it. Undefined: it is older than the key. */
  settings: Descriptor['webhook'] | undefined
  createdAt: Date
  rotatedAt: Date | null
}

/** What of its scheme people choose for a connection. */
export interface SchemeChoice {
  hmac: HmacScheme | null
  bearer: BearerScheme | null
  event: Source | null
  dedupe: Source | null
}

export interface ConnectionRow {
  id: string
  orgId: OrgId
  org: string
  name: string
  kind: ConnectionKind
  scheme: SchemeChoice
  /** The name that it had when it was named here. */
  environment: string | null
  environmentId: EnvironmentId | null
  enabled: boolean
  createdAt: Date
  createdBy: string
  rotatedAt: Date | null
}

/** A workflow that wants something of a connection. */
export interface NamingRow {
  workflowId: WorkflowId
  slug: string
}

/** How much is wanted of a connection. */
export interface WeighedRow {
  orgId: OrgId
  name: string
  workflows: number
  /** Of event patterns and filters, as text. */
  bytes: number
}

/** An entry under `connections` of the current version of a workflow. */
export interface WantedRow {
  workflowId: WorkflowId
  slug: string
  events: string[]
  filter: Descriptor['connections'][number]['filter']
  environment: string | null
}

/** What became of a delivery for one workflow. */
export interface MatchRow {
  workflowId: WorkflowId
  outcome: DeliveryOutcome
  reason: string | null
  runId: RunId | null
}

export interface DeliveryRow {
  id: string
  orgId: OrgId
  sourceId: string
  sourceName: string
  receivedAt: Date
  outcome: DeliveryOutcome
  reason: string | null
  event: string | null
  replayOf: string | null
  attempts: number
  matches: (MatchRow & { slug: string })[]
}

/** With what came in. */
export interface WholeDeliveryRow extends DeliveryRow {
  method: string
  query: string
  /** JSON text. */
  headers: string
  contentType: string | null
  payload: Buffer | null
  payloadKey: string | null
  payloadBytes: number
  isCut: boolean
}
