import { newId, type OrgId } from '@windlass/shared/ids.ts'
import type { Sql } from '../db/client.ts'
import { insertPool } from './store.ts'

/** The pool of this name is there when this returns, made now or before. */
export async function ensurePool(sql: Sql, orgId: OrgId, name: string): Promise<void> {
  await insertPool(sql, { id: newId('pool'), orgId, name })
}
