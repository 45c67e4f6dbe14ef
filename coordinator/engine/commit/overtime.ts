import type { RunId } from '@windlass/shared/ids.ts'
import type { Ending } from '@windlass/shared/model/ending.ts'
import { isFinal } from '@windlass/shared/model/run.ts'
import type { Entry } from '@windlass/shared/wire/agent.ts'
import type { Tx } from '../../db/client.ts'
import type { DatabaseClock } from '../../db/database-clock.ts'
import * as events from '../../events/store.ts'
import type { TermsReader, VersionTerms } from '../../workflows/terms.ts'
import type { ReadBatch } from '../rules/batch.ts'
import { isUsedUp } from '../rules/out-of-time.ts'
import type { Moving } from '../rules/run.ts'
import { timeOut } from './time-out.ts'

/**
 * Of a run whose time is over. That may be noted or not: while its agent is out of reach the note waits, see
 * `held-timers.ts`. What the agent tells is judged by when it happened: what was in time is taken as ever.
 */
export interface Overtime {
  version: VersionTerms
  /** When its time was over. */
  at: number
  /** When the last event was that its log had before these entries. */
  lastEventAt: number
}

type Timed = Pick<Moving, 'createdAt' | 'timedOut' | 'timedOutAt'>

/** Whether the time that a run has from its creation on is over, at this moment of the database's clock. */
export function isOvertime(run: Timed, version: VersionTerms, now: number): boolean {
  return run.timedOut || overAt(run, version) <= now
}

/** Of the runs whose time is over and of which something is told that goes by it. */
export async function overtimesOf(
  deps: { tx: Tx; versionTerms: TermsReader; databaseClock: Pick<DatabaseClock, 'now'> },
  batches: readonly ReadBatch[],
  runs: ReadonlyMap<string, Moving>,
): Promise<Map<RunId, Overtime>> {
  const theirs = new Set(batches.filter(goesByTime).map((batch) => batch.run))
  const named = [...runs.values()].filter((run) => theirs.has(run.id))
  const ids = named.map(({ versionId }) => versionId)
  await deps.versionTerms.warm(ids, deps.tx)
  const timed = await Promise.all(
    named.map(async (run) => ({ run, version: await deps.versionTerms.get(run.versionId, deps.tx) })),
  )
  const now = deps.databaseClock.now()
  const late = timed.filter(({ run, version }) => isOvertime(run, version, now))
  if (late.length === 0) return new Map()
  const lastTimes = await events.lastTimes(
    deps.tx,
    late.map(({ run }) => run),
  )
  return new Map(
    late.map(({ run, version }) => [
      run.id,
      { version, at: overAt(run, version), lastEventAt: lastTimes.get(run.id) ?? 0 },
    ]),
  )
}

function goesByTime({ entries, commands }: ReadBatch): boolean {
  return entries.some((entry) => entry[0] === 'end' || commands.get(entry)?.op.op === 'open')
}

/**
 * As the descriptor says, and no later than it was noted: a run that was created by a clock that was ahead is stopped
 * from then on.
 */
function overAt({ createdAt, timedOutAt }: Timed, { descriptor: { wallTimeoutMs } }: VersionTerms): number {
  return Math.min(createdAt.getTime() + (wallTimeoutMs ?? Infinity), timedOutAt?.getTime() ?? Infinity)
}

/** The program came to these by itself. The others may be what its agent made of it when the time was over. */
const OWN_ENDINGS: readonly Ending['how'][] = ['returned', 'threw', 'exited']

/**
 * Whether this happened when the time was over: all that is told after the time of the attempt was used up. An agent
 * may say when that was, but not before what it told last; the future is never in time.
 */
export function isOver(
  run: Pick<Moving, 'events' | 'activeMs'>,
  { at, lastEventAt, version }: Overtime,
  entry: Entry,
): boolean {
  if (isUsedUp(run, version)) return true
  if (entry[0] === 'end' && !OWN_ENDINGS.includes(entry[2].how)) return true
  return Math.max(entry[1], run.events.at(-1)?.at ?? lastEventAt) >= at
}

/** When a run ends that ended at this time: one that fails because its time is over does not do so before that. */
export function judgedAt({ timedOut }: Moving, at: number, overtime: Overtime | undefined): number {
  return timedOut && overtime ? Math.max(at, overtime.at) : at
}

/** Its entries are taken. If it has not ended with them its time is over again: there is no next attempt. */
export function goOver(run: Moving, { at, version }: Overtime): void {
  if (isFinal(run.status)) return
  run.timedOut = true
  timeOut(run, 'wall-timeout', at, version)
}
