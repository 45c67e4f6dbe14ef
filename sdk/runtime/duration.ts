const UNIT_MS: Record<string, number> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }
const FORM = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/
const LONGEST_DAYS = 366
const LONGEST_MS = LONGEST_DAYS * 86_400_000
// The calendar of JavaScript ends there.
const LAST_MOMENT = 8.64e15

/** A length of time: `'30s'`, `'1.5h'`, `'2d'` (units ms, s, m, h, d) or milliseconds. */
export type Duration = string | number

/** Milliseconds; what is none throws, named by `what`. The same forms as in a descriptor. */
export function millisecondsOf(what: string, value: Duration): number {
  const ms = typeof value === 'number' ? value : parse(value)
  if (ms === undefined || !Number.isFinite(ms) || ms < 0) {
    throw new TypeError(
      `${what}: ${shown(value)} is not a duration. Write '30s', '5m', '1.5h', '2d' or a number of milliseconds.`,
    )
  }
  if (ms > LONGEST_MS)
    throw new TypeError(`${what}: ${shown(value)} is longer than ${LONGEST_DAYS} days, which is the most.`)
  return Math.round(ms)
}

function parse(text: unknown): number | undefined {
  if (typeof text !== 'string') return undefined
  const [, amount, unit = ''] = FORM.exec(text.trim()) ?? []
  const unitMs = UNIT_MS[unit]
  return amount === undefined || unitMs === undefined ? undefined : Number(amount) * unitMs
}

/** Milliseconds since the epoch, at most a year away. */
export function momentOf(what: string, value: Date | number): number {
  const at = value instanceof Date ? value.getTime() : value
  // Not a number is not within either.
  if (typeof at !== 'number' || !(Math.abs(at) <= LAST_MOMENT)) {
    throw new TypeError(`${what}: ${shown(value)} is no moment. Give a valid Date or milliseconds since 1970.`)
  }
  if (at - Date.now() > LONGEST_MS) {
    throw new TypeError(
      `${what}: ${new Date(at).toISOString()} is more than ${LONGEST_DAYS} days away, which is the most.`,
    )
  }
  return Math.max(0, Math.round(at))
}

function shown(value: unknown): string {
  return typeof value === 'string' ? JSON.stringify(value) : String(value)
}
