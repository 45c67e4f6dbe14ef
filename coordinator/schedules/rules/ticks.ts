import { Cron } from 'croner'
import { LRUCache } from 'lru-cache'
import { changeWithin, instantOf, offsetAt } from './wall-time.ts'

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
const DAY_MS = 24 * HOUR_MS

/** When a schedule starts runs. Times are milliseconds since the epoch. */
export type When =
  | { kind: 'cron'; cron: string; timezone: string }
  | { kind: 'rate'; rateMs: number; anchorAt: number }
  | { kind: 'at'; at: number }

interface Pattern {
  /** By wall times that are written as UTC. */
  byWall: Cron
  isFixed: boolean
  /** Of a day on which it ticks. */
  minutes: number[]
  /** It ticks on each day. */
  isDaily: boolean
}

/** Reading a pattern takes longer than asking it, and croner keeps 80 KB for each. Zones have them in common. */
const patterns = new LRUCache<string, Pattern>({ max: 500 })
/** Schedules that are alike ask for the same ticks: finding one takes 50 µs, and ten times that in thirty years. */
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
  const at = nextOfCron(patternOf(when.cron), when.timezone, after)
  found.set(key, { at })
  return at
}

function patternOf(cron: string): Pattern {
  const known = patterns.get(cron)
  if (known) return known
  const pattern = {
    // With a zone croner would ask Intl for each step, and walk through the years where its times are in a gap.
    byWall: new Cron(cron, { mode: '5-part', paused: true, utcOffset: 0 }),
    isFixed: isFixed(cron),
    minutes: minutesOf(cron),
    isDaily: cron.endsWith(' * * *'),
  }
  patterns.set(cron, pattern)
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

function nextOfCron(pattern: Pattern, timezone: string, after: number): number | null {
  const { byWall, isFixed } = pattern
  if (!isFixed) return nextByElapsedTime(pattern, timezone, after)
  // What the clock shows for the second time after it was put back has fired.
  for (let wall = byWall.nextRun(new Date(after + offsetAt(timezone, after))); wall; wall = byWall.nextRun(wall)) {
    const at = instantOf(timezone, wall.getTime())
    if (at > after) return at
  }
  return null
}

/** None in a gap, and both times of two. None that is `MOST_APART_MS` away. */
function nextByElapsedTime({ byWall }: Pattern, zone: string, after: number): number | null {
  const nextWall = (behind: number) => byWall.nextRun(new Date(behind))?.getTime() ?? null
  let offset = offsetAt(zone, after)
  let wall = nextWall(after + offset)
  // The clock is put back by less than a day: what it shows again it shows within one.
  const minute = Math.floor(after / MINUTE_MS) * MINUTE_MS
  if (offsetAt(zone, minute + DAY_MS) !== offset) {
    const change = changeWithin(zone, minute, minute + DAY_MS)
    if (wall !== null && wall - offset < change) return wall - offset
    offset = offsetAt(zone, change)
    wall = nextWall(change + offset - 1)
  }
  while (wall !== null && wall - offset - after <= MOST_APART_MS) {
    const first = instantOf(zone, wall)
    const at = first > after ? first : wall - offset
    const shown = at + offsetAt(zone, at)
    if (shown === wall) return at
    // In a gap, which ends there.
    wall = nextWall(shown - 1)
  }
  return null
}

/** A tick that comes later than that after the one before is not shown. The check of new patterns looks as far. */
const MOST_APART_MS = 8 * 366 * DAY_MS

/** Those behind `after`, up to and with `until`. */
export function* ticksBetween(when: When, after: number, until: number): Generator<number> {
  for (let at = nextTick(when, after); at !== null && at <= until; at = nextTick(when, at)) yield at
}

/** At most so many: none behind one that is `MOST_APART_MS` away. */
export function nextTicks(when: When, after: number, count: number): number[] {
  const ticks: number[] = []
  for (let last = after; ticks.length < count;) {
    const at = nextTick(when, last)
    if (at === null || at - last > MOST_APART_MS) break
    ticks.push(at)
    last = at
  }
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
  let [ticks, end]: [number[], number | null] = [[], until]
  while (end !== null && ticks.length < count) {
    const stretch = stretchOf(when, after, end, count - ticks.length)
    ticks = [...stretch.ticks, ...ticks]
    // Before it lies a whole season of a pattern that ticks each minute in some months, say.
    end = lastTick(when, after, stretch.from)
  }
  return ticks.slice(-count)
}

const STRETCH_MS = 2 * HOUR_MS
/** They take some 50 ms. */
const MOST_IN_STRETCH = 1000

/** The longest before `end` that is looked through: with `count` ticks, from `after` on, or before one of too many. */
function stretchOf(when: When, after: number, end: number, count: number): { from: number; ticks: number[] } {
  let found: { from: number; ticks: number[] } = { from: end, ticks: [] }
  for (let stretch = STRETCH_MS; ; stretch *= 4) {
    const from = Math.max(after, end - stretch)
    const ticks: number[] = []
    for (const tick of ticksBetween(when, from, end)) if (ticks.push(tick) > count + MOST_IN_STRETCH) return found
    found = { from, ticks }
    if (ticks.length >= count || from === after) return found
  }
}

/** The last behind `after`, up to and with `until`. Halves the time in which it lies: none is looked for backwards. */
function lastTick(when: When, after: number, until: number): number | null {
  const next = (from: number) => {
    const at = nextTick(when, from)
    return at !== null && at <= until ? at : null
  }
  let last = next(after)
  for (let [low, high] = [after, until]; last !== null && high - low > 1;) {
    const middle = Math.floor((low + high) / 2)
    const at = next(middle)
    if (at === null) high = middle
    else [low, last] = [at, at]
  }
  return last
}

function countOfRate(when: When & { kind: 'rate' }, after: number, until: number): number {
  const first = nextTick(when, after)!
  return first > until ? 0 : Math.floor((until - first) / when.rateMs) + 1
}

/** So near to a change of the clock, ticks are looked for one by one. */
const UNEVEN_MS = 3 * HOUR_MS

/**
 * How many ticks there are behind `after`, up to and with `until`. They are counted by local days, and not looked for
 * one by one: a year of minutes takes some 20 ms.
 */
export function countTicks(when: When, after: number, until: number): number {
  if (when.kind === 'at') return when.at > after && when.at <= until ? 1 : 0
  if (when.kind === 'rate') return countOfRate(when, after, until)
  const pattern = patternOf(when.cron)
  // What the clock shows for the second time has fired: where that may be so, they are looked for as well.
  const isUneven = offsetAt(when.timezone, after - UNEVEN_MS) !== offsetAt(when.timezone, after)
  const even = isUneven ? Math.min(after + UNEVEN_MS, until) : after
  let count = [...ticksBetween(when, after, even)].length
  for (let from = even, to = even; from < until; from = to) {
    const offset = offsetAt(when.timezone, from)
    const wall = from + offset
    // Up to the last millisecond of the local day.
    to = Math.min((Math.floor((wall + 1) / DAY_MS) + 1) * DAY_MS - 1 - offset, until)
    const next = offsetAt(when.timezone, to)
    if (next === offset) count += countByWall(pattern, wall, to + offset)
    else {
      const change = changeWithin(when.timezone, from, to)
      const [near, far] = [Math.max(from, change - UNEVEN_MS), Math.min(to, change + UNEVEN_MS)]
      count += countByWall(pattern, wall, near + offset) + countByWall(pattern, far + next, to + next)
      count += [...ticksBetween(when, near, far)].length
    }
  }
  return count
}

/** By wall times: behind the one, up to and with the other. */
function countByWall(pattern: Pattern, after: number, until: number): number {
  let count = 0
  for (let day = Math.floor((after + 1) / DAY_MS) * DAY_MS; day <= until; day += DAY_MS)
    if (ticksOn(pattern, day)) count += minutesIn(pattern, after - day, until - day)
  return count
}

function ticksOn({ isDaily, byWall }: Pattern, day: number): boolean {
  if (isDaily) return true
  const first = byWall.nextRun(new Date(day - 1))
  return first !== null && first.getTime() < day + DAY_MS
}

function minutesIn({ minutes }: Pattern, after: number, until: number): number {
  if (after < 0 && until >= DAY_MS - MINUTE_MS) return minutes.length
  return minutes.filter((minute) => minute * MINUTE_MS > after && minute * MINUTE_MS <= until).length
}

/** The minutes of a day on which a pattern ticks, if it ticks on that day at all. */
function minutesOf(cron: string): number[] {
  const [minute = '', hour = ''] = cron.split(' ')
  const minutes = valuesOf(minute, 59)
  return [...valuesOf(hour, 23)].flatMap((h) => [...minutes].map((m) => h * 60 + m))
}

/** Of a field that has been checked: lists of numbers, ranges and steps. */
function valuesOf(field: string, most: number): Set<number> {
  const values = field.split(',').flatMap((part) => {
    const [range = '', step = '1'] = part.split('/')
    const [first = 0, last = first] = range === '*' ? [0, most] : range.split('-').map(Number)
    return Array.from({ length: Math.floor((last - first) / Number(step)) + 1 }, (_, i) => first + i * Number(step))
  })
  return new Set(values)
}
