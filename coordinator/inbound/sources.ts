import type { OrgId, WorkflowId } from '@windlass/shared/ids.ts'
import type { Source } from '@windlass/shared/model/connection.ts'
import type { Db } from '../db/client.ts'
import type { ConnectionRow, WebhookRow } from './row.ts'
import type { About } from './rules/events.ts'
import type { Auth } from './rules/signature.ts'
import * as store from './store.ts'

/** A webhook or a connection, with what it takes to judge a delivery. */
export interface InboundSource {
  kind: 'webhook' | 'connection'
  id: string
  orgId: OrgId
  /** Slug of the workflow, or name of the connection. */
  name: string
  auth: Auth
  about: About
  /** Header that holds the secret itself. */
  secretHeader?: string
  /** Further headers by which it judges a delivery, and knows it again. */
  judgedBy: readonly string[]
  isEnabled: boolean
  /** Where the runs get their variables, unless the descriptor says it; by its id where that is known. */
  environment: { ref: string; name: string } | null
  /** Set for a webhook. */
  hook?: { workflowId: WorkflowId; input: 'body' | 'request' }
  /** By the database's clock. */
  now: Date
}

/** Undefined: there is none, or its workflow is deleted. */
export async function findSource(deps: { db: Db }, id: string): Promise<InboundSource | undefined> {
  if (id.startsWith('hook_')) {
    const row = await store.findHook(deps.db, id)
    return row && ofWebhook(row)
  }
  const row = await store.findInbound(deps.db, id)
  return row && ofConnection(row)
}

const BEARER = { header: 'Authorization', prefix: 'Bearer ' }

function ofWebhook(row: WebhookRow & { now: Date }): InboundSource {
  const { environment = null, input = 'body', dedupe = null } = row.settings ?? {}
  return {
    kind: 'webhook',
    id: row.id,
    orgId: row.orgId,
    name: row.slug,
    auth: row.auth === 'bearer' ? { kind: 'bearer', bearer: BEARER } : { kind: 'webhook' },
    about: { kind: 'webhook', dedupe },
    judgedBy: namesIn(dedupe),
    isEnabled: true,
    environment: environment === null ? null : { ref: environment, name: environment },
    hook: { workflowId: row.workflowId, input },
    now: row.now,
  }
}

function ofConnection(row: ConnectionRow & { now: Date }): InboundSource {
  const { kind, scheme } = row
  const { hmac } = scheme
  return {
    kind: 'connection',
    id: row.id,
    orgId: row.orgId,
    name: row.name,
    auth: authOf(row),
    about: { kind, event: scheme.event, dedupe: scheme.dedupe, idHeader: hmac?.idHeader },
    judgedBy: namesIn(hmac?.header, hmac?.timestampHeader, hmac?.idHeader, scheme.event, scheme.dedupe),
    ...(scheme.bearer && { secretHeader: scheme.bearer.header }),
    isEnabled: row.enabled,
    environment: row.environment === null ? null : { ref: row.environmentId ?? row.environment, name: row.environment },
    now: row.now,
  }
}

/** Headers among what a scheme reads. */
function namesIn(...read: readonly (string | Source | null | undefined)[]): string[] {
  return read.flatMap((one) => (typeof one === 'string' ? [one] : one && 'header' in one ? [one.header] : []))
}

function authOf({ kind, scheme }: ConnectionRow): Auth {
  if (kind === 'hmac') return { kind, hmac: scheme.hmac! }
  if (kind === 'bearer') return { kind, bearer: scheme.bearer! }
  return { kind }
}
