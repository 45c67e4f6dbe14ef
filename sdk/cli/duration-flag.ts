import { durationMs } from '@windlass/shared/model/duration.ts'
import { Failure } from './failure.ts'

// Node's timers hold 24 days at most.
const LONGEST_TIMER_MS = 2 ** 31 - 1

/** A length of time such as `90s`, in milliseconds. */
export function lengthFlag(flag: string, text: string, example: string): number {
  const ms = durationMs(text)
  if (ms !== undefined) return ms
  throw new Failure(`${flag} takes a length of time, not \`${text}\`.`, `windlass ${example}`)
}

/** The same for a timer: more than nothing, and no more than Node can wait. */
export function timerFlag(flag: string, text: string, example: string): number {
  const ms = lengthFlag(flag, text, example)
  if (ms > 0) return Math.min(ms, LONGEST_TIMER_MS)
  throw new Failure(`${flag} takes a length of time, not \`${text}\`.`, `windlass ${example}`)
}

/** A point in time: so long ago (`2d`), a date (`2026-11-20`, `2026-11-20T14:00Z`) or milliseconds since the epoch. */
export function momentFlag(flag: string, text: string, example: string): number {
  const ago = durationMs(text)
  if (ago !== undefined) return Math.max(0, Date.now() - ago)
  const at = /^\d{10,}$/.test(text) ? Number(text) : /^\d{4}-\d{2}-\d{2}/.test(text) ? dateMs(text) : Number.NaN
  if (Number.isSafeInteger(at) && at >= 0) return at
  throw new Failure(
    `${flag} takes how long ago, or a date, not \`${text}\`.`,
    `windlass ${example} (or 2026-11-20, or 2026-11-20T14:00:00Z)`,
  )
}

/** A bare day is meant where the person is, as everything else here is shown. */
function dateMs(text: string): number {
  return new Date(text.length === 10 ? `${text}T00:00:00` : text).getTime()
}

export function wholeNumber(flag: string, text: string, example: string): number {
  const number = Number(text)
  if (text.trim() !== '' && Number.isSafeInteger(number)) return number
  throw new Failure(`${flag} takes a whole number, not \`${text}\`.`, `windlass ${example}`)
}
