import { Fault } from '@windlass/shared/errors.ts'
import { MOST_SCHEDULE_INPUT_BYTES } from '@windlass/shared/model/schedule.ts'
import type { z } from 'zod'
import type { ops } from '@windlass/shared/ops/index.ts'
import type { Content } from './row.ts'
import { checkedCron } from './rules/cron.ts'
import { refuseOnlyInGaps } from './rules/only-in-gaps.ts'
import { checkedZone } from './rules/zones.ts'

type Asked = Partial<z.output<(typeof ops.schedules.update)['input']>>

/** `at` may lie so long in the past: the request was under way. */
const PAST_MS = 60_000
const YEAR_2001 = 978_307_200_000

const refused = (path: string, message: string, detail: Record<string, unknown> = {}) =>
  new Fault('VALIDATION_FAILED', { path, ...detail }, `${path}: ${message}`)

type WhenContent = Pick<Content, 'kind' | 'cron' | 'timezone' | 'rateMs' | 'anchorAt' | 'at'>

/**
 * When it ticks, by what was asked and, for a change, what it was. Throws VALIDATION_FAILED for what does not go
 * together, and for what is no cron or no zone.
 */
export function whenAsked(asked: Asked, was: WhenContent | undefined, now: number): WhenContent {
  const kinds = (['cron', 'rate', 'at'] as const).filter((kind) => asked[kind] !== undefined)
  if (kinds.length > 1 || (kinds.length === 0 && !was))
    throw refused(kinds[1] ?? 'cron', 'give exactly one of `cron`, `rate`, `at`.', { given: kinds })
  const kind = kinds[0] ?? was!.kind
  if (asked.timezone !== undefined && kind !== 'cron') throw refused('timezone', 'goes with `cron` only; leave it out.')
  if (asked.anchorAt !== undefined && kind !== 'rate') throw refused('anchorAt', 'goes with `rate` only; leave it out.')
  const anchorAt = asked.anchorAt === undefined ? (was?.anchorAt ?? now) : momentOf(asked.anchorAt)
  const none = { cron: null, timezone: null, rateMs: null, at: null, anchorAt }
  if (kind === 'rate') return { ...none, kind, rateMs: asked.rate ?? was!.rateMs }
  if (kind === 'at') return { ...none, kind, at: asked.at === undefined ? was!.at : futureOf(asked.at, now) }
  const zone = asked.timezone === undefined ? (was?.timezone ?? 'UTC') : checkedZone(asked.timezone)
  const cron = asked.cron === undefined ? was!.cron! : checkedCron(asked.cron, now)
  if (asked.cron !== undefined || asked.timezone !== undefined) refuseOnlyInGaps({ cron, timezone: zone }, now)
  return { ...none, kind, cron, timezone: zone }
}

const momentOf = (given: string | number) => (typeof given === 'string' ? Date.parse(given) : given)

function futureOf(given: string | number, now: number): number {
  const at = momentOf(given)
  if (at < YEAR_2001 && typeof given === 'number')
    throw refused('at', `${given} lies before 2001. Are these seconds? Give milliseconds, ${given * 1000}.`)
  if (at < now - PAST_MS) throw refused('at', `${new Date(at).toISOString()} has passed; name a time to come.`)
  return at
}

/** JSON text of an input that a schedule keeps. */
export function inputAsked(input: unknown): string {
  const text = JSON.stringify(input ?? null)
  const bytes = Buffer.byteLength(text)
  const most = MOST_SCHEDULE_INPUT_BYTES
  if (bytes <= most) return text
  throw new Fault(
    'PAYLOAD_TOO_LARGE',
    { path: 'input', bytes, limitBytes: most },
    `The input has ${bytes} bytes as JSON; a schedule keeps ${most}. Let the program fetch what is larger.`,
  )
}
