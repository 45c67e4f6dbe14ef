import cronstrue from 'cronstrue'
import type { When } from './ticks.ts'

const UNITS = [
  ['day', 86_400_000],
  ['hour', 3_600_000],
  ['minute', 60_000],
  ['second', 1000],
  ['millisecond', 1],
] as const

/** When a schedule starts runs, for people. */
export function describe(when: When): string {
  if (when.kind === 'at') return `Once, at ${new Date(when.at).toISOString()}`
  if (when.kind === 'rate') return describeRate(when.rateMs)
  return `${describeCron(when.cron)} (${when.timezone})`
}

function describeRate(ms: number): string {
  const [unit, length] = UNITS.find(([, length]) => ms % length === 0)!
  const count = ms / length
  return count === 1 ? `Every ${unit}` : `Every ${count} ${unit}s`
}

/** cronstrue says "on day 13 and on Friday" of what runs on either. */
function describeCron(cron: string): string {
  const [minute = '', hour = '', day = '', month = '', weekday = ''] = cron.split(' ')
  const isFree = (field: string) => field === '*' || field === '?'
  if (isFree(day) || isFree(weekday)) return say(cron)
  const only = (fields: string) => say(`0 0 ${fields}`).replace('At 00:00, ', '')
  const days = `${only(`${day} * *`)} or ${only(`* * ${weekday}`).replace(/^only /, '')}`
  const months = isFree(month) ? '' : `, ${only(`* ${month} *`)}`
  return `${say(`${minute} ${hour} * * *`)}, ${days}${months}`
}

function say(cron: string): string {
  const options = { use24HourTimeFormat: true, verbose: false, throwExceptionOnParseError: true }
  return cronstrue.toString(cron.replaceAll('?', '*'), options)
}
