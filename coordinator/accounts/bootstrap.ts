import type { OrgId } from '@windlass/shared/ids.ts'
import type { Sql } from '../db/client.ts'
import { ensureOrg } from './orgs.ts'

/** What every installation begins with: the org `default` and its pool. Finds them there the second time. */
export function ensureDefaults(sql: Sql): Promise<OrgId> {
  return ensureOrg(sql, 'default', 'Default')
}
