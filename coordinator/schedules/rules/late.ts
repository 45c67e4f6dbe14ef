import type { CatchUp } from '@windlass/shared/model/late-rules.ts'
import { heldMs, type HeldTime } from './held.ts'

/** A tick that is later than that counts as missed, unless it waited for an agent. */
const MISSED_MS = 60_000
/** Pause between runs that catch up. */
const SPREAD_MS = 1000

/** A tick that is due. */
export interface DueTick {
  at: number
  /** When it was to fire: `at`, put off by its jitter. */
  dueAt: number
}

export interface Firing extends DueTick {
  /** How late it is. */
  lateMs: number
  isCatchUp: boolean
  /** After so long, from now on. */
  delayMs: number
}

/** Ticks that are due. */
export interface Due {
  /** The newest of them, the earliest first. */
  newest: readonly DueTick[]
  /** The first, and how many there are in all. */
  from: number
  count: number
}

export interface Missed {
  from: number
  to: number
  count: number
  /** Of these, so many fire late. */
  caughtUp: number
}

/**
 * Which ticks of those that are due fire, the earliest first. `skip` fires none that was missed; `last` the newest,
 * unless a later one is in time; `all` the newest `most` of them, one per second. What is older than the window never
 * fires.
 */
export function decideLate(
  { newest, from, count: all }: Due,
  rule: { now: number; catchUp: CatchUp; windowMs: number; most: number; held?: HeldTime | null },
): { fire: Firing[]; missed: Missed | null } {
  const { now, catchUp, windowMs, most, held = null } = rule
  const lateBy = ({ dueAt }: DueTick) => Math.max(0, now - dueAt)
  const missedBy = (tick: DueTick) => lateBy(tick) - heldMs(held, tick)
  const missed = newest.filter((tick) => missedBy(tick) > MISSED_MS)
  const inTime = newest.filter((tick) => missedBy(tick) <= MISSED_MS)
  const recent = missed.filter((tick) => missedBy(tick) <= windowMs)
  const count = catchUp === 'all' ? most : catchUp === 'last' && inTime.length === 0 ? 1 : 0
  const caughtUp = count === 0 ? [] : recent.slice(-count)
  const fire = [
    ...caughtUp.map((tick, i) => ({ ...tick, lateMs: lateBy(tick), isCatchUp: true, delayMs: i * SPREAD_MS })),
    ...inTime.map((tick) => ({ ...tick, lateMs: lateBy(tick), isCatchUp: false, delayMs: 0 })),
  ]
  const last = missed.at(-1)
  if (!last) return { fire, missed: null }
  return { fire, missed: { from, to: last.at, count: all - inTime.length, caughtUp: caughtUp.length } }
}
