import type { Log } from '@windlass/shared/log.ts'
import type { Db } from '../db/client.ts'
import { offsetAt } from './rules/gaps.ts'
import { rearmed } from './state.ts'
import * as store from './store.ts'

const HOUR_MS = 3_600_000

/**
 * What the zone data that this release was tested with (2026c) says, and older data does not: hours ahead of UTC. Node
 * brings its own data, and that of the system may be older.
 */
const TESTED: readonly (readonly [zone: string, at: number, hours: number])[] = [
  ['Africa/Casablanca', Date.UTC(2027, 10, 7, 12), 0],
  ['Africa/El_Aaiun', Date.UTC(2027, 10, 7, 12), 0],
  ['America/Edmonton', Date.UTC(2027, 11, 2, 6), -6],
  ['America/Vancouver', Date.UTC(2027, 11, 2, 6), -7],
  ['Europe/Chisinau', Date.UTC(2027, 9, 31), 3],
]

/** Zones whose clocks this process sees otherwise than the release was tested with. */
function zonesThatDiffer(): string[] {
  return TESTED.filter(([zone, at, hours]) => offsetAt(zone, at) !== hours * HOUR_MS).map(([zone]) => zone)
}

const PAGE = 500

/**
 * After a start with other zone data than the last one the next ticks of all cron schedules are found anew, once. Those
 * that are due stay: which tick comes next is decided by what is stored.
 */
export async function renewNextTicks(
  { db, log }: { db: Db; log: Log },
  tz: string = process.versions.tz ?? 'unknown',
): Promise<number> {
  const zones = zonesThatDiffer()
  if (zones.length > 0) log.warn('zones.older', { tz, zones })
  return db.begin(async (tx) => {
    const before = await store.lockZoneData(tx, tz)
    if (before === tz) return 0
    let renewed = 0
    let after = ''
    for (;;) {
      const rows = await store.lockCrons(tx, after, PAGE)
      for (const row of rows) {
        const next = rearmed(row, row.now)
        if (next.nextAt === row.nextAt && next.stoppedBecause === row.stoppedBecause) continue
        await store.update(tx, next)
        renewed++
      }
      if (rows.length < PAGE) break
      after = rows.at(-1)!.id
    }
    await store.noteZoneData(tx, tz)
    log('schedules.renewed', { before, tz, renewed })
    return renewed
  })
}
