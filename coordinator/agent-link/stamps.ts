import type { Entry } from '@windlass/shared/wire/agent.ts'
import type { DatabaseClock } from '../db/database-clock.ts'

/** Agents take a smaller difference for none; so do we, or times would move with each look at the database's clock. */
const NOISE_MS = 1000

/**
 * Agents say when things happened by the clock of this machine, which they have from our answers. All else goes by that
 * of the database. Nothing has happened later than it came.
 */
export function byDatabase(clock: DatabaseClock, entries: Entry[]): Entry[] {
  const [now, aheadMs] = [clock.now(), Math.round(clock.aheadMs())]
  const byMs = Math.abs(aheadMs) > NOISE_MS ? aheadMs : 0
  if (byMs === 0 && entries.every((entry) => entry[1] <= now + NOISE_MS)) return entries
  return entries.map((entry) => {
    const at = Math.max(0, entry[1] - byMs)
    return entry.with(1, at <= now + NOISE_MS ? at : now) as unknown as Entry
  })
}
