import type { Cause } from '@windlass/shared/model/why.ts'
import type { Situation } from './store-why.ts'

/** A cause whose times are those of the database. */
export type CauseFacts = Omit<Cause, 'since' | 'until'> & { since?: Date | null; until?: Date | null }

export function causeOf({ since, until, ...facts }: CauseFacts): Cause {
  return { ...facts, since: since?.getTime() ?? null, until: until?.getTime() ?? null }
}

/** `2026-11-21 14:03:07 UTC`: readers may sit anywhere. */
export function timeText(time: Date): string {
  return `${time.toISOString().slice(0, 19).replace('T', ' ')} UTC`
}

/** `40 s`, `3 min`, `2 h 5 min`, `3 days`: how long, for eyes. */
export function lengthText(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1000))
  const minutes = Math.round(seconds / 60)
  if (seconds < 100) return `${seconds} s`
  if (minutes < 100) return `${minutes} min`
  if (minutes < 48 * 60) return `${Math.floor(minutes / 60)} h ${minutes % 60} min`
  return `${Math.round(minutes / 1440)} days`
}

export function counted(count: number, one: string, many = `${one}s`): string {
  return `${count} ${count === 1 ? one : many}`
}

/** A runner that missed so many heartbeats is told to be silent. */
const MISSED_BEATS = 3

/**
 * That nothing is heard of the runner that has the run; undefined while all is well. `then` says what becomes of the run when the
 * runner's lease has run out.
 */
export function silence(
  run: Situation,
  { heartbeatMs, sweepMs, amnestyMs }: { heartbeatMs: number; sweepMs: number; amnestyMs: number },
  then: string,
): Cause | undefined {
  const { runner, lastHeardAt, leaseExpiresAt, now } = run
  if (runner === null || leaseExpiresAt === null) return undefined
  const isOverdue = leaseExpiresAt <= now
  const silentMs = lastHeardAt === null ? Infinity : now.getTime() - lastHeardAt.getTime()
  if (!isOverdue && silentMs <= MISSED_BEATS * heartbeatMs) return undefined
  const heard = lastHeardAt === null ? 'was never heard of' : `was last heard of ${lengthText(silentMs)} ago`
  const when = isOverdue
    ? `Its lease ran out at ${timeText(leaseExpiresAt)}: with the next look, within ${lengthText(sweepMs)}, ${then}. In the first ${lengthText(amnestyMs)} after its start a coordinator takes no run away.`
    : `When it is not heard of until ${timeText(leaseExpiresAt)}, ${then}.`
  return causeOf({
    code: 'RUNNER_SILENT',
    message: `The runner ${runner} ${heard}. ${when}`,
    since: lastHeardAt,
    until: leaseExpiresAt,
    change: `Whoever runs the machine of ${runner}: see that its agent works and reaches the coordinator.`,
  })
}
