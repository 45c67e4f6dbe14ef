import { z } from 'zod'

const UNIT_MS: Record<string, number> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }
const FORM = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/

/** Milliseconds of `"30s"`, `"1.5h"` or a plain number of milliseconds; undefined when it is neither. */
export function durationMs(value: string | number): number | undefined {
  if (typeof value === 'number') return Number.isSafeInteger(value) && value >= 0 ? value : undefined
  const [, amount, unit] = FORM.exec(value.trim()) ?? []
  if (amount === undefined || unit === undefined) return undefined
  const ms = Math.round(Number(amount) * (UNIT_MS[unit] ?? Number.NaN))
  return Number.isSafeInteger(ms) ? ms : undefined
}

const DESCRIBED = { description: 'A number and its unit: ms, s, m, h or d.', examples: ['30s', '5m', '1h', '2d'] }

/** A duration in a file or a request; parses to milliseconds between the two bounds. */
export function duration(bounds: { min: string; max: string }) {
  const min = durationMs(bounds.min) ?? 0
  const max = durationMs(bounds.max) ?? Number.MAX_SAFE_INTEGER
  const inMs = { description: `Milliseconds, ${min} to ${max}.`, minimum: min, maximum: max }
  const error = 'is not a duration: write "30s", "5m", "1h", "2d" or milliseconds'
  return z
    .union([z.string().regex(FORM, { error }).meta(DESCRIBED), z.int().nonnegative({ error }).meta(inMs)], { error })
    .transform((value) => durationMs(value) ?? Number.NaN)
    .refine((ms) => ms >= min && ms <= max, { error: `must lie between ${bounds.min} and ${bounds.max}` })
}
