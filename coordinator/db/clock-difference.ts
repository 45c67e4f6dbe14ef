import type { Log } from '@windlass/shared/log.ts'
import type { Db } from './client.ts'

/** Beyond this it shows: ids are made by this clock, times are noted by that of the database. */
const MOST_MS = 60_000

/** The clocks of servers are put right by less, all the time. */
export const CORRECTION_MS = 1000

/** Says so when this clock and that of the database are apart. Answers by how much this one is ahead. */
export async function warnOfClock(db: Db, log: Log): Promise<number> {
  const before = Date.now()
  const [row] = await db<[{ now: number }]>`
    select floor(extract(epoch from clock_timestamp()) * 1000)::float8 as now`
  const { now } = row
  // The answer may have taken long; what lies between both looks is no difference.
  const aheadMs = now < before ? before - now : Math.min(0, Date.now() - now)
  if (Math.abs(aheadMs) > MOST_MS) log.warn('clock.differs', { aheadMs: Math.round(aheadMs) })
  return aheadMs
}
