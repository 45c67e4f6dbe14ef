/** Ticks of cron patterns, found by walking a year minute by minute with Intl, and by nothing that the product uses. */

const MINUTE_MS = 60_000
const HOUR_MINUTES = 60
const DAY_MINUTES = 1440

/** Of each kind: fixed times, lists and ranges of them, steps, days of either kind, and days on which clocks change. */
export const PATTERNS = [
  '30 2 * * *',
  '0 0 * * *',
  '30 23 * * *',
  '15 1 * * *',
  '0 3 * * MON-FRI',
  '0 1,2,3 * * 0',
  '30 0-4 * * 6,7',
  '59 23 * * 6',
  '0 0 1 * *',
  '30 2 L * *',
  '15,45 0,23 * 3,10 *',
  '45 1 13 * 5',
  '0 2 * * 0L',
  '30 2 ? * 7#2',
  '0 * * * *',
  '*/20 1-3 * * SUN',
  '30 1-23/2 * 3,4,9-11 *',
  '5 */6 */2 * MON',
  '0-59/30 2 * * *',
  '* 0-2 * MAR,OCT 0L',
] as const

/** Zones whose clocks are changed in this year. */
export function zonesWithChanges(year: number): string[] {
  return Intl.supportedValuesOf('timeZone').filter((zone) => {
    const offset = offsetsOf(zone)
    const start = Date.UTC(year, 0, 1)
    const days = Array.from({ length: 366 }, (_, day) => offset(start + day * DAY_MINUTES * MINUTE_MS))
    return days.some((each) => each !== days[0])
  })
}

/** Minutes that the wall clock is ahead of UTC. */
function offsetsOf(zone: string): (at: number) => number {
  const format = new Intl.DateTimeFormat('sv', {
    timeZone: zone,
    year: 'numeric',
    month: '2-digit',
    day: '2-digit',
    hour: '2-digit',
    minute: '2-digit',
  })
  return (at) => Math.round((Date.parse(`${format.format(at).replace(' ', 'T')}Z`) - at) / MINUTE_MS)
}

interface Matcher {
  isFixed: boolean
  ofDay: Uint8Array
  isDay(wall: number): boolean
}

/** For each pattern its ticks in this year, in milliseconds since the epoch. */
export function walk(zone: string, year: number, patterns: readonly string[]): number[][] {
  const matchers = patterns.map(matcherOf)
  const ticks = patterns.map((): number[] => [])
  const seen = patterns.map(() => new Set<number>())
  const offset = offsetsOf(zone)
  const [start, end] = [Date.UTC(year, 0, 1) / MINUTE_MS, Date.UTC(year + 1, 0, 1) / MINUTE_MS]
  let last = start - 1 + offset((start - 1) * MINUTE_MS)
  for (let hour = start; hour < end; hour += HOUR_MINUTES) {
    const [first, next] = [offset(hour * MINUTE_MS), offset((hour + HOUR_MINUTES) * MINUTE_MS)]
    for (let minute = hour; minute < hour + HOUR_MINUTES; minute++) {
      const wall = minute + (first === next ? first : offset(minute * MINUTE_MS))
      matchers.forEach((matcher, i) => {
        if (fires(matcher, seen[i]!, last, wall)) ticks[i]!.push(minute * MINUTE_MS)
      })
      last = wall
    }
  }
  return ticks
}

/** Whether a pattern fires in a minute whose wall clock shows `wall`, after it has shown `last`. */
function fires(matcher: Matcher, seen: Set<number>, last: number, wall: number): boolean {
  const matches = (at: number) => matcher.ofDay[modulo(at, DAY_MINUTES)] === 1 && matcher.isDay(at)
  if (!matcher.isFixed) return matches(wall)
  let isTick = false
  // What did not exist fires now; of what exists twice the second is not counted.
  for (let at = Math.min(last + 1, wall); at <= wall; at++) {
    if (!matches(at) || seen.has(at)) continue
    seen.add(at)
    isTick = true
  }
  return isTick
}

const modulo = (n: number, of: number) => ((n % of) + of) % of

function matcherOf(pattern: string): Matcher {
  const [minute = '', hour = '', day = '', month = '', weekday = ''] = pattern.split(' ')
  const [minutes, hours] = [setOf(minute, 0, 59), setOf(hour, 0, 23)]
  const ofDay = new Uint8Array(DAY_MINUTES)
  for (const h of hours) for (const m of minutes) ofDay[h * HOUR_MINUTES + m] = 1
  const known = new Map<number, boolean>()
  const isDay = (wall: number) => {
    const date = Math.floor(wall / DAY_MINUTES)
    const found = known.get(date) ?? isDayOf({ day, month, weekday }, new Date(date * DAY_MINUTES * MINUTE_MS))
    known.set(date, found)
    return found
  }
  return { isFixed: !/[*/]/.test(minute + hour), ofDay, isDay }
}

const MONTHS = ['JAN', 'FEB', 'MAR', 'APR', 'MAY', 'JUN', 'JUL', 'AUG', 'SEP', 'OCT', 'NOV', 'DEC']
const DAYS = ['SUN', 'MON', 'TUE', 'WED', 'THU', 'FRI', 'SAT']

function isDayOf(of: { day: string; month: string; weekday: string }, date: Date): boolean {
  if (!setOf(of.month, 1, 12, MONTHS).has(date.getUTCMonth() + 1)) return false
  const isAny = (field: string) => field === '*' || field === '?'
  if (isAny(of.day) && isAny(of.weekday)) return true
  const byDay = !isAny(of.day) && isDayOfMonth(of.day, date)
  const byWeekday = !isAny(of.weekday) && isWeekday(of.weekday, date)
  return byDay || byWeekday
}

const lengthOfMonth = (date: Date) => new Date(Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1, 0)).getUTCDate()

function isDayOfMonth(field: string, date: Date): boolean {
  if (field === 'L') return date.getUTCDate() === lengthOfMonth(date)
  return setOf(field, 1, 31).has(date.getUTCDate())
}

function isWeekday(field: string, date: Date): boolean {
  const [day, n] = [date.getUTCDay(), date.getUTCDate()]
  const last = /^(\d)L$/.exec(field)
  if (last) return day === Number(last[1]) % 7 && n + 7 > lengthOfMonth(date)
  const nth = /^(\d)#(\d)$/.exec(field)
  if (nth) return day === Number(nth[1]) % 7 && Math.ceil(n / 7) === Number(nth[2])
  const days = setOf(field, 0, 7, DAYS)
  return days.has(day) || (day === 0 && days.has(7))
}

function setOf(field: string, least: number, most: number, names: readonly string[] = []): Set<number> {
  const number = (text: string) => (names.includes(text) ? names.indexOf(text) + least : Number(text))
  const all = new Set<number>()
  for (const part of field.split(',')) {
    const [range = '', step = '1'] = part.split('/')
    const [from = '', to] = range.split('-')
    const [first, last] = range === '*' ? [least, most] : [number(from), number(to ?? from)]
    for (let n = first; n <= last; n += Number(step)) all.add(n)
  }
  return all
}
