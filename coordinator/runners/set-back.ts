import type { Log } from '@windlass/shared/log.ts'
import type { Db } from '../db/client.ts'
import { inPasses } from '../engine/commit/clock-set-back.ts'
import { QUARANTINE_MS } from './intake.ts'
import * as store from './store-set-back.ts'

/**
 * Runners that a clock of the database which was ahead has kept from work are so for as long as ever from now on, and
 * none was heard at a time which is still to come.
 */
export async function putRunnersBack({ db, log }: { db: Db; log: Log }, signal?: AbortSignal): Promise<number> {
  const changed = await inPasses(async () => {
    const intakes = await store.putIntakesBack(db, QUARANTINE_MS)
    const heard = await store.putHeardBack(db)
    return { moved: intakes.moved + heard.moved, left: intakes.left + heard.left }
  }, signal)
  if (changed > 0) log.warn('runners.setBack', { runners: changed })
  return changed
}
