import type { OrgId } from '@windlass/shared/ids.ts'
import type { Author } from './row.ts'

/** Who has done what nobody asked for at that moment. */
export function ourselves(orgId: OrgId): Author {
  return { kind: 'system', id: 'coordinator', name: 'coordinator', orgId, via: 'system', requestId: null }
}
