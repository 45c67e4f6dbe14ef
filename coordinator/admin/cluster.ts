import { record } from '../audit/record.ts'
import { beginEpoch } from '../db/cluster.ts'
import type { Admin } from './open.ts'
import { orgIds } from './store.ts'

/**
 * Says that the database was set back, also to all orgs: it ends what they execute. Answers the new epoch. With
 * `areAgentsStopped` runs are given out at once.
 */
export function noteRestored({ db, operator }: Admin, options?: { areAgentsStopped: boolean }): Promise<string> {
  return db.begin(async (tx) => {
    const epoch = await beginEpoch(tx, options)
    for (const orgId of await orgIds(tx)) {
      const change = { action: 'cluster.restored', target: { type: 'org', id: orgId } }
      await record(tx, { ...operator, orgId }, change)
    }
    return epoch
  })
}
