import type { Log } from '@windlass/shared/log.ts'
import type { Db } from '../db/client.ts'
import { inPasses } from '../engine/commit/clock-set-back.ts'
import * as store from './store-set-back.ts'
import { enqueueTurn } from './turns.ts'

/** Jobs whose last turn was given by a clock of the database that was ahead have the next one now. */
export async function putBulkJobsBack({ db, log }: { db: Db; log: Log }, signal?: AbortSignal): Promise<number> {
  const changed = await inPasses(async () => {
    const pass = { moved: 0, left: 0 }
    for (const orgId of await store.orgsAhead(db)) {
      const { moved, left } = await db.begin(async (tx) => {
        const ofOrg = await store.putBack(tx, orgId)
        if (ofOrg.moved > 0) await enqueueTurn(tx, orgId)
        return ofOrg
      })
      pass.moved += moved
      pass.left += left
    }
    return pass
  }, signal)
  if (changed > 0) log.warn('bulk.setBack', { jobs: changed })
  return changed
}
