import type { Log } from '@windlass/shared/log.ts'
import type { Db } from '../db/client.ts'
import { offsetAt } from './rules/wall-time.ts'
import { rearmed, rested } from './state.ts'
import * as store from './store.ts'
import { insertGaps, settle } from './store-settle.ts'

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
  const before = await store.zoneData(db)
  if (before === tz) return 0
  let renewed = 0
  for (let after: string | null = ''; after !== null;) {
    const page = await renewPage(db, after)
    renewed += page.renewed
    after = page.last
  }
  // Last: a start that is interrupted is followed by one that begins anew.
  await store.noteZoneData(db, tz)
  log('schedules.renewed', { before, tz, renewed })
  return renewed
}

/** In one transaction, so that nobody waits for the locks of more than a page. `last` is null behind the last page. */
function renewPage(db: Db, after: string): Promise<{ renewed: number; last: string | null }> {
  return db.begin(async (tx) => {
    const rows = await store.lockCrons(tx, after, PAGE)
    const changes = rows.flatMap((row) => {
      const resting = rested(row, row, { now: row.now, isWorkflowDeleted: row.isWorkflowDeleted })
      const next = rearmed(resting.row, row.now)
      const isSame = next.nextAt === row.nextAt && next.stoppedBecause === row.stoppedBecause
      return isSame ? [] : [{ next, gap: resting.gap }]
    })
    const gaps = changes.flatMap(({ gap }) => gap ?? [])
    const ids = await insertGaps(tx, gaps)
    const gapIds = new Map(gaps.map((gap, i) => [gap.scheduleId, ids[i]!]))
    const settled = changes.map(({ next }) => ({
      ...next,
      isOver: next.endedBecause === 'over',
      gapId: gapIds.get(next.id) ?? next.gapId,
    }))
    if (settled.length > 0) await settle(tx, settled)
    return { renewed: settled.length, last: rows.length < PAGE ? null : rows.at(-1)!.id }
  })
}
