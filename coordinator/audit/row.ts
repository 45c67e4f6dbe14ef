import type { AuditId, OrgId } from '@windlass/shared/ids.ts'
import type { Via } from '@windlass/shared/model/audit.ts'
import type { Acting } from '../actor.ts'

/** Who makes a change: a caller in a request, or somebody who needs no credential of ours. */
export type Author =
  | Acting
  | {
      kind: 'token' | 'operator' | 'system'
      id: string
      name: string
      orgId: OrgId
      via: Via
      requestId: string | null
    }

/** Never with the value of a secret or a key in it: whoever reads the log must not learn one. */
export interface Change {
  /** The operation, as in `keys.revoke`. */
  action: string
  target: { type: string; id: string; name?: string | null }
  before?: object | null
  after?: object | null
}

/** An entry as it is kept. */
export interface AuditRow {
  id: AuditId
  at: Date
  actorKind: Author['kind']
  actorId: string
  actorName: string
  via: Via
  requestId: string | null
  action: string
  targetType: string
  targetId: string
  targetName: string | null
  before: Record<string, unknown> | null
  after: Record<string, unknown> | null
}
