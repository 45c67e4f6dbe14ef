import { jitterOf } from './jitter.ts'
import type { CatchUp, Overlap } from '@windlass/shared/model/late-rules.ts'
import { decideLate, type DueTick, type Firing, type Missed } from './late.ts'
import { decideOverlap } from './overlap.ts'
import { type HeldTime, MOST_HELD_MS } from './held.ts'
import { countTicks, newestTicks, nextTick, type When } from './ticks.ts'

/** What of a schedule decides about its ticks. */
export interface Ticking {
  id: string
  when: When
  jitterMs: number
  catchUp: CatchUp
  catchUpWindowMs: number
  overlap: Overlap
}

/** A tick that comes, and when it fires. */
export type Next = DueTick | null

/** The first tick behind this instant. */
export function nextOf(of: Pick<Ticking, 'id' | 'when' | 'jitterMs'>, after: number): Next {
  const at = nextTick(of.when, after)
  return at === null ? null : { at, dueAt: dueAtOf(of, at) }
}

/** When a tick fires. */
export function dueAtOf({ id, when, jitterMs }: Pick<Ticking, 'id' | 'when' | 'jitterMs'>, at: number): number {
  if (jitterMs === 0) return at
  return at + jitterOf({ schedule: id, jitterMs, at, nextAt: nextTick(when, at) })
}

/** What becomes of the ticks that are due. */
export interface Settled {
  fire: Firing[]
  /** They meet an unfinished run. */
  skip: Firing[]
  /** Runs that are to be cancelled for what fires. */
  cancel: string[]
  missed: Missed | null
  /** Ticks up to this one are settled. */
  upTo: number
  next: Next
}

/** Some ticks in time, besides those that were missed: of every ten seconds within a minute, at most. */
const IN_TIME = 8
/** And while they wait for an agent. */
const IN_TIME_HELD = IN_TIME + MOST_HELD_MS / 10_000

/**
 * Settles everything that is due since `nextAt`, which is. `until`: the rule held up to then, and every tick up to then
 * is due, whatever is left of its jitter.
 */
export function settle(
  of: Ticking & { nextAt: number },
  at: { now: number; until?: number | undefined; unfinished: readonly string[]; most: number; held?: HeldTime | null },
): Settled {
  const due = dueSince(of, at, at.most + (at.held ? IN_TIME_HELD : IN_TIME))
  const late = decideLate(due, {
    now: at.now,
    catchUp: of.catchUp,
    windowMs: of.catchUpWindowMs,
    most: at.most,
    held: at.held ?? null,
  })
  const upTo = due.newest.at(-1)!.at
  return { ...decideOverlap(of.overlap, late.fire, at.unfinished), missed: late.missed, upTo, next: nextOf(of, upTo) }
}

function dueSince(
  of: Ticking & { nextAt: number },
  { now: present, until = Infinity }: { now: number; until?: number | undefined },
  most: number,
) {
  const { when, nextAt } = of
  const now = Math.min(present, until)
  const tick = (at: number): DueTick => ({ at, dueAt: Math.min(dueAtOf(of, at), until) })
  const second = nextTick(when, nextAt)
  const single = tick(nextAt)
  // Nearly always: nobody has waited for it but us. An edit may have moved the times that it was one of.
  if (second === null || second > now) return { newest: [single], from: nextAt, count: 1 }
  const later = newestTicks(when, nextAt, now, most).map(tick)
  const due = later.filter(({ dueAt }) => dueAt <= now)
  const newest = due.length < most ? [single, ...due] : due
  return { newest, from: nextAt, count: 1 + countTicks(when, nextAt, now) - (later.length - due.length) }
}
