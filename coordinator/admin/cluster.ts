import { record } from '../audit/record.ts'
import { beginEpoch } from '../db/cluster.ts'
import type { Admin } from './open.ts'
import { orgIds } from './store.ts'

/** Says that the database was set back, also to all orgs: it ends what they execute. Answers the new epoch. */
export function noteRestored({ db, operator }: Admin): Promise<string> {
  return db.begin(async (tx) => {
    const epoch = await beginEpoch(tx)
    for (const orgId of await orgIds(tx)) {
      const change = { action: 'cluster.restored', target: { type: 'org', id: orgId } }
      await record(tx, { ...operator, orgId }, change)
    }
    return epoch
  })
}
