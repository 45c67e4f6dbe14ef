import { Cron } from 'croner'
import { Fault } from '@windlass/shared/errors.ts'

/** One of the five fields: what it may hold. */
interface Field {
  name: string
  least: number
  most: number
  /** `JAN`, `MON` and so on, from `least` on. */
  names: readonly string[]
}

const MONTHS = ['JAN', 'FEB', 'MAR', 'APR', 'MAY', 'JUN', 'JUL', 'AUG', 'SEP', 'OCT', 'NOV', 'DEC']
const DAYS = ['SUN', 'MON', 'TUE', 'WED', 'THU', 'FRI', 'SAT']
const DAY = 'day of month'
const WEEKDAY = 'day of week'

const FIELDS: readonly Field[] = [
  { name: 'minute', least: 0, most: 59, names: [] },
  { name: 'hour', least: 0, most: 23, names: [] },
  { name: DAY, least: 1, most: 31, names: [] },
  { name: 'month', least: 1, most: 12, names: MONTHS },
  // 0 and 7 are Sunday.
  { name: WEEKDAY, least: 0, most: 7, names: DAYS },
]

const NICKNAMES: Record<string, string> = {
  '@yearly': '0 0 1 1 *',
  '@annually': '0 0 1 1 *',
  '@monthly': '0 0 1 * *',
  '@weekly': '0 0 * * 0',
  '@daily': '0 0 * * *',
  '@midnight': '0 0 * * *',
  '@hourly': '0 * * * *',
}

const EXAMPLE = 'such as `0 9 * * 1-5`'
/** A pattern without a time for so long is a mistake, such as 31 February. */
const LOOK_AHEAD_MS = 8 * 366 * 86_400_000

/**
 * The pattern with one space between its fields. Throws VALIDATION_FAILED for what is none, with the field as it was
 * written and the form that works.
 */
export function checkedCron(text: string, now: number): string {
  const cron = text.trim().split(/\s+/).join(' ')
  const nickname = NICKNAMES[cron.toLowerCase()]
  if (nickname !== undefined) throw refused(cron, `\`${cron}\` is not taken: write \`${nickname}\``, { use: nickname })
  if (cron.startsWith('@')) throw refused(cron, `\`${cron}\` is not taken: write five fields, ${EXAMPLE}`)
  const parts = cron.split(' ')
  if (parts.length !== FIELDS.length || cron === '') {
    const seconds = parts.length === 6 ? '; there are no seconds' : ''
    throw refused(cron, `has ${cron === '' ? 0 : parts.length} fields${seconds}: write five, ${EXAMPLE}`)
  }
  parts.forEach((part, i) => checkField(FIELDS[i]!, part))
  const next = read(cron).nextRun(new Date(now))
  if (next === null || next.getTime() - now > LOOK_AHEAD_MS)
    throw refused(cron, `\`${cron}\` names no time within the next eight years: check its day and month`)
  return cron
}

function read(cron: string): Cron {
  try {
    return new Cron(cron, { mode: '5-part', timezone: 'UTC', paused: true })
  } catch (error) {
    // What passes the check above and not this is not known to exist.
    throw refused(cron, `\`${cron}\` cannot be read: ${(error as Error).message}`)
  }
}

function refused(value: string, message: string, more: { field?: string; use?: string } = {}): Fault {
  return new Fault('VALIDATION_FAILED', { path: 'cron', value, ...more }, `cron: ${message}.`)
}

function checkField(field: Field, text: string): void {
  if (text === '?' && isOfDays(field)) return
  for (const part of text.split(',')) checkPart(field, part, text)
}

const isOfDays = ({ name }: Field) => name === DAY || name === WEEKDAY

function checkPart(field: Field, part: string, text: string): void {
  const wrong = (why: string, use?: string) =>
    refused(text, `${field.name} \`${text}\`: ${why}${use === undefined ? '' : `: write \`${use}\``}`, {
      field: field.name,
      ...(use !== undefined && { use }),
    })
  if (part === '') throw wrong('a value is missing between commas')
  if (part.startsWith('+')) throw wrong('`+` is not taken; both days at once cannot be asked for', part.slice(1) || '*')
  if (field.name === DAY && part.toUpperCase() === 'L') return
  if (/^\d*L?W$|^L-\d+$/i.test(part))
    throw wrong('the nearest weekday and days before the last are not taken', part.match(/^\d+/)?.[0] ?? 'L')
  if (field.name === WEEKDAY && checkNth(field, part, wrong)) return
  const [range = '', step, ...more] = part.split('/')
  if (more.length > 0) throw wrong('there is more than one `/`')
  checkRange(field, { part, range, step }, wrong)
  if (step !== undefined) checkStep(field, step, wrong)
}

type Wrong = (why: string, use?: string) => Fault

/** `5L` and `5#3`; false: it is neither. */
function checkNth(field: Field, part: string, wrong: Wrong): boolean {
  const last = /^(.+?)(?:#L|L)$/i.exec(part)
  if (last && !/^\d*$/.test(last[1]!) && numberOf(field, last[1]!) === undefined) return false
  if (last) {
    const day = numberOf(field, last[1]!)
    if (day === undefined) throw wrong(`takes ${rangeOf(field)}`)
    if (!/^\dL$/i.test(part)) throw wrong('the last such day is written with its number', `${day}L`)
    return true
  }
  const [day = '', nth, ...more] = part.split('#')
  if (nth === undefined) return false
  const number = numberOf(field, day)
  if (number === undefined || more.length > 0) throw wrong(`takes ${rangeOf(field)} in front of \`#\``)
  if (!/^[1-5]$/.test(nth)) throw wrong('takes 1 to 5 behind `#`', `${day}#1`)
  return true
}

function checkRange(
  field: Field,
  { part, range, step }: { part: string; range: string; step: string | undefined },
  wrong: Wrong,
): void {
  if (range === '*') return
  const ends = range.split('-')
  const [from, to] = ends.map((end) => numberOf(field, end))
  if (from === undefined || ends.length > 2 || (ends.length === 2 && to === undefined)) {
    const short = field.names.find((name) => range.toUpperCase().startsWith(name) && /^[a-z]+$/i.test(range))
    throw wrong(`\`${part}\` is none of ${rangeOf(field)}`, short)
  }
  const top = field.name === WEEKDAY ? 6 : field.most
  if (ends.length === 1) {
    if (step !== undefined) throw wrong('a step needs `*` or a range before it', `${range}-${top}/${step}`)
    return
  }
  // As the end of a range `SUN` is 7, as it is to croner; 0 is not.
  const end = field.name === WEEKDAY && ends[1]!.toUpperCase() === 'SUN' && from > 0 ? 7 : to!
  if (from > end) throw wrong('a range goes upwards', unwrapped(field, ends as [string, string], to!))
}

/** `FRI-SUN,MON` for `FRI-MON`, and `22-23,0-2` for `22-2`. */
function unwrapped(field: Field, [from, end]: [string, string], to: number): string {
  const isWeekday = field.name === WEEKDAY
  const isNamed = !/^\d/.test(from)
  const first = isWeekday ? 1 : field.least
  const named = (n: number) => (isNamed ? (field.names[n - field.least] ?? String(n)) : String(n))
  const upTo = isWeekday ? (isNamed ? 'SUN' : '7') : named(field.most)
  const start = from.toUpperCase() === upTo ? upTo : `${from}-${upTo}`
  if (isWeekday && to === 0) return start
  return `${start},${to === first ? named(first) : `${named(first)}-${end}`}`
}

function checkStep(field: Field, step: string, wrong: Wrong): void {
  const count = field.most - field.least + (field.name === WEEKDAY ? 0 : 1)
  const number = /^\d{1,3}$/.test(step) ? Number(step) : Number.NaN
  if (!(number >= 1 && number <= count)) throw wrong(`a step is a number from 1 to ${count}`)
}

function numberOf({ least, most, names }: Field, text: string): number | undefined {
  const named = names.indexOf(text.toUpperCase())
  if (named !== -1) return named + least
  const number = /^\d{1,2}$/.test(text) ? Number(text) : Number.NaN
  return number >= least && number <= most ? number : undefined
}

function rangeOf({ least, most, names }: Field): string {
  const named = names.length > 0 ? `, ${names[0]} to ${names.at(-1)}` : ''
  return `${least} to ${most}${named}`
}
