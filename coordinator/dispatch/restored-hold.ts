/**
 * After a restore no run is given out until agents of before have ended what they held. An agent that connects is told
 * to end it, and one that cannot connect ends it when it has been silent for its fence; until then a run that the
 * database has in its queue once more could be executed twice at once.
 */
import type { PoolId } from '@windlass/shared/ids.ts'
import type { Log } from '@windlass/shared/log.ts'
import type { Config } from '../config.ts'
import type { Db } from '../db/client.ts'
import { restoredAgo } from '../db/cluster.ts'
import { createFreshCache } from '../db/fresh-cache.ts'
import { longestFenceIn, type PoolSettingsCache, poolSettingsOf } from '../runners/pool-settings.ts'
import { leaseOf } from '../runners/settings.ts'

export interface RestoredHold {
  /** For how long yet runs of this pool are not given out, in milliseconds; 0: they are. */
  restMs(poolId: PoolId): Promise<number>
}

const REASON = 'the database was restored or moved, and agents may still execute what they held before'

/** What a pool of these coordinators may tell its agents at most: see `reassignAfterMs`. */
const LONGEST_MS = 25 * 3_600_000

export async function openRestoredHold(deps: {
  db: Db
  config: Config
  log: Log
  poolSettings: PoolSettingsCache
}): Promise<RestoredHold> {
  const { db, config, log } = deps
  const agoMs = await restoredAgo(db)
  // The database's clock is read once, so that a change of it while a pool waits makes its wait no shorter.
  const begunAt = performance.now() - (agoMs ?? 0)
  const lengths = createFreshCache<PoolId, number>({
    async read(poolId) {
      const [settings, toldMs] = await Promise.all([poolSettingsOf(deps, poolId), longestFenceIn(db, poolId)])
      return leaseOf(config, settings, toldMs)
    },
    freshMs: 60_000,
    most: 2000,
  })
  const logged = new Set<PoolId>()
  const over = new Set<PoolId>()

  return {
    async restMs(poolId) {
      if (agoMs === undefined || over.has(poolId) || performance.now() - begunAt > LONGEST_MS) return 0
      const restMs = Math.ceil(begunAt + (await lengths.of(poolId)) - performance.now())
      if (restMs <= 0) {
        over.add(poolId)
        return 0
      }
      if (!logged.has(poolId)) log.warn('pool.held', { poolId, restMs, reason: REASON })
      logged.add(poolId)
      return restMs
    },
  }
}
