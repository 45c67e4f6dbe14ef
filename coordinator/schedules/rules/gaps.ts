import { LRUCache } from 'lru-cache'

/** A moment at which clocks of a zone were put forward: wall times from `from` to `to` did not exist there. */
export interface Gap {
  /** The first instant after it, in milliseconds since the epoch. */
  at: number
  /** Wall times, written as if they were UTC. */
  from: number
  to: number
}

const DAY_MS = 86_400_000
const MINUTE_MS = 60_000

const formats = new LRUCache<string, Intl.DateTimeFormat>({ max: 700 })
/** By zone and year. */
const gapsByYear = new LRUCache<string, Gap[]>({ max: 20_000 })

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

/** Gaps whose first instant lies behind `after` and not behind `until`. */
export function gapsBetween(zone: string, after: number, until: number): Gap[] {
  const gaps: Gap[] = []
  for (let year = yearOf(after); year <= yearOf(until); year++) gaps.push(...gapsOf(zone, year))
  return gaps.filter(({ at }) => at > after && at <= until)
}

const yearOf = (at: number) => new Date(at).getUTCFullYear()

function gapsOf(zone: string, year: number): Gap[] {
  const key = `${zone} ${year}`
  const known = gapsByYear.get(key)
  if (known) return known
  const gaps: Gap[] = []
  const end = Date.UTC(year + 1, 0, 1)
  let before = offsetAt(zone, Date.UTC(year, 0, 1))
  for (let day = Date.UTC(year, 0, 1); day < end; day += DAY_MS) {
    const after = offsetAt(zone, day + DAY_MS)
    if (after > before) {
      const at = changeWithin(zone, day, day + DAY_MS)
      gaps.push({ at, from: at + before, to: at + after })
    }
    before = after
  }
  gapsByYear.set(key, gaps)
  return gaps
}

/** The first instant of the new offset; offsets change on whole minutes. */
function changeWithin(zone: string, from: number, to: number): number {
  const before = offsetAt(zone, from)
  let [low, high] = [from, to]
  while (high - low > MINUTE_MS) {
    const middle = low + Math.floor((high - low) / 2 / MINUTE_MS) * MINUTE_MS
    if (offsetAt(zone, middle) === before) low = middle
    else high = middle
  }
  return high
}
