import { newId } from '@windlass/shared/ids.ts'
import type { Sql } from '../db/client.ts'
import type { Author, Change } from './row.ts'
import * as store from './store.ts'

export type { Author, Change }
export type Entry = Change & { by: Author }

/** Adds to the audit log, in the transaction of the change: neither is there without the other. */
export async function record(sql: Sql, by: Author, change: Change): Promise<void> {
  await recordAll(sql, [{ by, ...change }])
}

/** The same for many changes of one transaction. */
export async function recordAll(sql: Sql, entries: readonly Entry[]): Promise<void> {
  if (entries.length > 0)
    await store.insert(
      sql,
      entries.map((entry) => ({ id: newId('aud'), ...entry })),
    )
}
