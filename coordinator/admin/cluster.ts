import { record } from '../audit/record.ts'
import { beginEpoch, type EpochOptions, systemOf } from '../db/cluster.ts'
import type { Admin } from './open.ts'
import { orgIds } from './store.ts'

/**
 * Says that the database was set back, also to all orgs: it ends what they execute. Answers the new epoch. With
 * `areAgentsStopped` runs are given out at once.
 */
export async function noteRestored(
  { db, operator }: Admin,
  options?: Pick<EpochOptions, 'areAgentsStopped'>,
): Promise<string> {
  const system = await systemOf(db)
  return db.begin(async (tx) => {
    const epoch = await beginEpoch(tx, { ...options, system })
    for (const orgId of await orgIds(tx)) {
      const change = { action: 'cluster.restored', target: { type: 'org', id: orgId } }
      await record(tx, { ...operator, orgId }, change)
    }
    return epoch
  })
}
