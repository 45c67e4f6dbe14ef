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

/** `5 min 2 s`, to the second. */
function exactText(ms: number): string {
  const seconds = Math.max(1, Math.round(ms / 1000))
  const parts = [
    [Math.floor(seconds / 3600), 'h'],
    [Math.floor(seconds / 60) % 60, 'min'],
    [seconds % 60, 's'],
  ] as const
  return parts.flatMap(([count, unit]) => (count > 0 ? [`${count} ${unit}`] : [])).join(' ')
}

/** What an outage of ours did to its lease, as a sentence after others; empty where there was none. */
export function lengthening({ lengthenedMs, lengthenedAt }: Situation): string {
  if (lengthenedMs === null || lengthenedAt === null) return ''
  const why = 'after a time in which no coordinator could renew it'
  return ` Its lease was lengthened by ${exactText(lengthenedMs)}, last at ${timeText(lengthenedAt)}, ${why}.`
}

/** The cause while the coordinator cannot store what is reported of the run; undefined while it can. */
export function refusal({ refusedSince, runner }: Situation): Cause | undefined {
  if (refusedSince === null || runner === null) return undefined
  return causeOf({
    code: 'REPORTS_REFUSED',
    message:
      `The coordinator cannot store what ${runner} reports of it, so its log lacks what it does. ` +
      'The runner keeps that on its disk and sends it again. ' +
      'The run fails after ten minutes in which only its reports are refused. ' +
      'It does not while that is as others hold its rows, or as the database has no room: then it goes on after that.',
    since: refusedSince,
    change: 'Whoever runs the coordinator: its log has the cause, as `run.entries.refused` with the id of this run.',
  })
}

/** A runner that missed so many heartbeats is told to be silent. */
const MISSED_BEATS = 3

/**
 * That nothing is heard of the runner that has the run; undefined while all is well. `then` says what becomes of the
 * run when the runner's lease has run out.
 */
export function silence(
  run: Situation,
  { heartbeatMs, sweepMs }: { heartbeatMs: number; sweepMs: number },
  then: string,
): Cause | undefined {
  const { runner, lastHeardAt, leaseExpiresAt, now } = run
  if (runner === null || leaseExpiresAt === null) return undefined
  const isOverdue = leaseExpiresAt <= now
  const silentMs = lastHeardAt === null ? Infinity : now.getTime() - lastHeardAt.getTime()
  if (!isOverdue && silentMs <= MISSED_BEATS * heartbeatMs) return undefined
  const heard = lastHeardAt === null ? 'was never heard of' : `was last heard of ${lengthText(silentMs)} ago`
  const look = run.isHeld
    ? 'when the session of the database that holds its row has ended'
    : `with the next look, within ${lengthText(sweepMs)}`
  const when = isOverdue
    ? `Its lease ran out at ${timeText(leaseExpiresAt)}: ${look}, ${then}.`
    : `When it is not heard of until ${timeText(leaseExpiresAt)}, ${then}.`
  return causeOf({
    code: 'RUNNER_SILENT',
    message: `The runner ${runner} ${heard}. ${when}${lengthening(run)}`,
    since: lastHeardAt,
    until: leaseExpiresAt,
    change: `Whoever runs the machine of ${runner}: see that its agent works and reaches the coordinator.`,
  })
}
