import type { Log } from '@windlass/shared/log.ts'
import { within } from '@windlass/shared/time.ts'
import type { Pool } from 'pg'
import { RateLimiterPostgres } from 'rate-limiter-flexible'

/** What the store gave: so many requests may be served, so many are left for the next who asks, in a window that ends then. */
export interface Draw {
  granted: number
  left: number
  endsInMs: number
}

export interface Ask {
  /** Name of the bucket, the same on all coordinators. */
  key: string
  wanted: number
  limit: number
}

/** Where all coordinators draw from. Undefined: it is not there, and whoever asks has to help himself. */
export type Draws = (ask: Ask) => Promise<Draw | undefined>

export interface DrawsOptions {
  pool: Pool
  windowMs: number
  log: Log
}

/** A caller waits no longer than this for the store. */
export const PATIENCE_MS = 500
/** So long after a failure it is left alone; then one asks, and the others do not wait to hear what comes of it. */
const REST_MS = 1000
const WARN_MS = 1000

/**
 * The windows in the table `rate_limits`. They are timed by the clocks of the coordinators: where these differ by a second,
 * a window begins a second early for one of them.
 */
export function createDraws({ pool, windowMs, log }: DrawsOptions): Draws {
  const limiter = new RateLimiterPostgres({
    storeClient: pool,
    // `pool` would be guessed from the name of the class, which is the same for this.
    storeType: 'client',
    tableName: 'rate_limits',
    tableCreated: true,
    keyPrefix: '',
    duration: windowMs / 1000,
    // Never reached: what of a block is still within its limit is worked out below.
    points: 2 ** 31 - 1,
  })
  let isDoubtful = false
  let restsUntil = Number.NEGATIVE_INFINITY
  let warnedAt = Number.NEGATIVE_INFINITY

  const failed = (error: unknown) => {
    const now = performance.now()
    isDoubtful = true
    restsUntil = now + REST_MS
    if (now - warnedAt < WARN_MS) return
    warnedAt = now
    log.warn('limits.local', { reason: error instanceof Error ? error.message : error })
  }

  return async ({ key, wanted, limit }) => {
    if (performance.now() < restsUntil) return undefined
    if (isDoubtful) restsUntil = performance.now() + REST_MS
    try {
      // `penalty` counts and refuses nothing, so that the rest of a last block is not lost.
      const counting = limiter.penalty(key, wanted)
      const { consumedPoints, msBeforeNext } = await within(PATIENCE_MS, counting, 'The store of the limits is silent')
      isDoubtful = false
      restsUntil = Number.NEGATIVE_INFINITY
      const granted = Math.max(0, Math.min(wanted, limit - (consumedPoints - wanted)))
      return { granted, left: Math.max(0, limit - consumedPoints), endsInMs: Math.min(msBeforeNext, windowMs) }
    } catch (error) {
      failed(error)
      return undefined
    }
  }
}
