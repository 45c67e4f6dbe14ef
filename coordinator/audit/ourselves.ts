import type { OrgId } from '@windlass/shared/ids.ts'
import type { Author } from './row.ts'

/** The author of what nobody asked for at that moment. */
export function ourselves(orgId: OrgId): Author {
  return { kind: 'system', id: 'coordinator', name: 'coordinator', orgId, via: 'system', requestId: null }
}
