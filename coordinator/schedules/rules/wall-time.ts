import { LRUCache } from 'lru-cache'

const DAY_MS = 86_400_000
const MINUTE_MS = 60_000

const formats = new LRUCache<string, Intl.DateTimeFormat>({ max: 700 })

/** How far the wall clock of the zone is ahead of UTC at this instant. */
export function offsetAt(zone: string, at: number): number {
  let format = formats.get(zone)
  if (!format) {
    format = new Intl.DateTimeFormat('en-US', {
      timeZone: zone,
      hourCycle: 'h23',
      year: 'numeric',
      month: 'numeric',
      day: 'numeric',
      hour: 'numeric',
      minute: 'numeric',
      second: 'numeric',
    })
    formats.set(zone, format)
  }
  const [month, day, year, hour, minute, second] = format.format(at).match(/\d+/g)!.map(Number)
  const wall = Date.UTC(year!, month! - 1, day, hour, minute, second)
  return wall - Math.floor(at / 1000) * 1000
}

/**
 * The first instant at which the clock of the zone shows this wall time, which is written as if it were UTC. Where the
 * clock is put forward over it, the first instant after the gap.
 */
export function instantOf(zone: string, wall: number): number {
  // No clock is a day away from UTC, and none is changed twice in two days.
  const [from, to] = [wall - DAY_MS, wall + DAY_MS]
  const [before, after] = [offsetAt(zone, from), offsetAt(zone, to)]
  if (before === after) return wall - before
  const change = changeWithin(zone, from, to)
  if (wall - before < change) return wall - before
  return Math.max(wall - after, change)
}

/** The first instant of the new offset, where the two instants have different ones; offsets change on whole minutes. */
export function changeWithin(zone: string, from: number, to: number): number {
  const before = offsetAt(zone, from)
  let [low, high] = [from, to]
  while (high - low > MINUTE_MS) {
    const middle = low + Math.floor((high - low) / 2 / MINUTE_MS) * MINUTE_MS
    if (offsetAt(zone, middle) === before) low = middle
    else high = middle
  }
  return high
}
