import { Cron } from 'croner'
import { LRUCache } from 'lru-cache'
import { gapsBetween, offsetAt } from './gaps.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS

/** When a schedule starts runs. Times are milliseconds since the epoch. */
export type When =
  | { kind: 'cron'; cron: string; timezone: string }
  | { kind: 'rate'; rateMs: number; anchorAt: number }
  | { kind: 'at'; at: number }

interface Pattern {
  inZone: Cron
  /** The same by wall times that are written as UTC. */
  byWall: Cron
  isFixed: boolean
}

/** Reading a pattern takes longer than asking it. */
const patterns = new LRUCache<string, Pattern>({ max: 5000 })
/** Schedules that are alike ask for the same ticks: finding one takes 90 µs. */
const found = new LRUCache<string, { at: number | null }>({ max: 20_000 })

/** The first tick behind this instant; null: there is none. Throws where the zone is not known here. */
export function nextTick(when: When, after: number): number | null {
  if (when.kind === 'at') return when.at > after ? when.at : null
  if (when.kind === 'rate') {
    // The first tick comes one step behind the anchor.
    const steps = Math.max(1, Math.floor((after - when.anchorAt) / when.rateMs) + 1)
    return when.anchorAt + steps * when.rateMs
  }
  const key = `${when.timezone} ${when.cron} ${after}`
  const known = found.get(key)
  if (known) return known.at
  const at = nextOfCron(patternOf(when), when.timezone, after)
  found.set(key, { at })
  return at
}

function patternOf({ cron, timezone }: { cron: string; timezone: string }): Pattern {
  const key = `${timezone} ${cron}`
  const known = patterns.get(key)
  if (known) return known
  const options = { mode: '5-part', fixedTimeRule: 'no-wildcard', paused: true } as const
  const pattern = {
    inZone: new Cron(cron, { ...options, timezone }),
    byWall: new Cron(cron, { ...options, timezone: 'UTC' }),
    isFixed: isFixed(cron),
  }
  patterns.set(key, pattern)
  return pattern
}

/**
 * Fixed times fire once on their local day: in a gap at the first instant after it, and the first time of two. A
 * pattern with `*` or `/` in minute or hour goes by elapsed time: none in a gap, and both times of two.
 */
function isFixed(cron: string): boolean {
  const [minute = '', hour = ''] = cron.split(' ')
  return !/[*/?]/.test(minute + hour)
}

/** croner loses a fixed time in a gap that ends its day, as in Nuuk on 27 March 2027: such gaps are looked at here. */
function nextOfCron({ inZone, byWall, isFixed }: Pattern, timezone: string, after: number): number | null {
  const next = inZone.nextRun(new Date(after))?.getTime() ?? null
  if (!isFixed || next === null) return next
  for (const gap of gapsBetween(timezone, after, next)) {
    const lost = byWall.nextRun(new Date(gap.from - 1))?.getTime() ?? null
    if (lost !== null && lost < gap.to) return gap.at
  }
  return next
}

/** Those behind `after`, up to and with `until`. */
export function* ticksBetween(when: When, after: number, until: number): Generator<number> {
  for (let at = nextTick(when, after); at !== null && at <= until; at = nextTick(when, at)) yield at
}

export function nextTicks(when: When, after: number, count: number): number[] {
  const ticks: number[] = []
  for (let at = nextTick(when, after); at !== null && ticks.length < count; at = nextTick(when, at)) ticks.push(at)
  return ticks
}

/** The newest ticks behind `after`, up to and with `until`: at most so many, the earliest first. */
export function newestTicks(when: When, after: number, until: number, count: number): number[] {
  if (when.kind === 'rate') {
    const ticks = Math.min(count, countOfRate(when, after, until))
    const last = when.anchorAt + Math.floor((until - when.anchorAt) / when.rateMs) * when.rateMs
    return Array.from({ length: ticks }, (_, i) => last - (ticks - 1 - i) * when.rateMs)
  }
  // There may be thousands: looked for from the end, in ever longer stretches.
  for (let stretch = 2 * HOUR_MS; ; stretch *= 4) {
    const from = Math.max(after, until - stretch)
    const ticks = [...ticksBetween(when, from, until)]
    if (ticks.length >= count || from === after) return ticks.slice(-count)
  }
}

function countOfRate(when: When & { kind: 'rate' }, after: number, until: number): number {
  const first = nextTick(when, after)!
  return first > until ? 0 : Math.floor((until - first) / when.rateMs) + 1
}

/** How many ticks there are behind `after`, up to and with `until`. */
export function countTicks(when: When, after: number, until: number): number {
  if (when.kind === 'at') return when.at > after && when.at <= until ? 1 : 0
  if (when.kind === 'rate') return countOfRate(when, after, until)
  const { byWall } = patternOf(when)
  let count = 0
  /** Any day without a change of the clock has as many ticks as any other on which the pattern ticks at all. */
  let ofDay: number | undefined
  for (let from = after, to = after; from < until; from = to) {
    const offset = offsetAt(when.timezone, from)
    const wall = from + offset
    // Up to the last millisecond of the local day.
    to = Math.min((Math.floor(wall / DAY_MS) + 1) * DAY_MS - 1 - offset, until)
    if (to <= from) to = Math.min(from + DAY_MS, until)
    const isWhole = to - from === DAY_MS && (wall + 1) % DAY_MS === 0 && offsetAt(when.timezone, to) === offset
    if (!isWhole) count += [...ticksBetween(when, from, to)].length
    else if ((byWall.nextRun(new Date(wall))?.getTime() ?? Infinity) <= wall + DAY_MS)
      count += ofDay ??= [...ticksBetween(when, from, to)].length
  }
  return count
}
