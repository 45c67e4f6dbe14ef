import { newId } from '@windlass/shared/ids.ts'
import type { Sql } from '../db/client.ts'
import type { Author, Change } from './row.ts'
import * as store from './store.ts'

export type { Author, Change }

/** Adds to the audit log, in the transaction of the change: neither is there without the other. */
export async function record(sql: Sql, by: Author, change: Change): Promise<void> {
  await store.insert(sql, { id: newId('aud'), by, ...change })
}
