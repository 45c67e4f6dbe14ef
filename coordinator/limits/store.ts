import type { Log } from '@windlass/shared/log.ts'
import { within } from '@windlass/shared/time.ts'
import type { Pool } from 'pg'
import type { Db } from '../db/client.ts'

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
  /** How long a caller waits for the store. */
  patienceMs: number
  log: Log
}

/** So long after a failure it is left alone; then one asks, and the others do not wait to hear what comes of it. */
const REST_MS = 1000
const WARN_MS = 1000

/**
 * Counts in the bucket's window, or begins a new one when that is over. The database's clock times it, read behind the
 * lock of the row: a window that ends later than one from now is of a clock that was set back since, and over too.
 */
const DRAW = `
  insert into rate_limits as held (key, points, expire)
  values ($1, $2, (extract(epoch from clock_timestamp()) * 1000)::bigint + $3::int)
  on conflict (key) do update
  set (points, expire) = (
    select case when is_open then held.points else 0 end + excluded.points,
      case when is_open then held.expire else at + $3::int end
    from (select (extract(epoch from clock_timestamp()) * 1000)::bigint as at) as clock,
      lateral (select held.expire > at and held.expire <= at + $3::int as is_open) as window_of
  )
  returning points, (expire - extract(epoch from clock_timestamp()) * 1000)::float8 as ends_in_ms`

/** The windows in the table `rate_limits`. */
export function createDraws({ pool, windowMs, patienceMs, log }: DrawsOptions): Draws {
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
      const drawing = pool.query<{ points: number; ends_in_ms: number }>(DRAW, [key, wanted, windowMs])
      const { rows } = await within(patienceMs, drawing, 'The store of the limits is silent')
      const { points, ends_in_ms: endsInMs } = rows[0]!
      isDoubtful = false
      restsUntil = Number.NEGATIVE_INFINITY
      const granted = Math.max(0, Math.min(wanted, limit - (points - wanted)))
      return { granted, left: Math.max(0, limit - points), endsInMs: Math.max(0, Math.min(endsInMs, windowMs)) }
    } catch (error) {
      failed(error)
      return undefined
    }
  }
}

/** Removes windows that ended more than an hour ago. */
export async function removeOldWindows(db: Db): Promise<void> {
  await db`
    delete from rate_limits
    where expire < extract(epoch from now() - interval '1 hour') * 1000`
}
