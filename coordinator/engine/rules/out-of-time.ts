import type { RunError } from '@windlass/shared/model/run.ts'
import type { VersionTerms } from '../../workflows/terms.ts'
import { overtimeError, timedOutError } from './run-errors.ts'
import type { Moving } from './run.ts'

type Counted = Pick<Moving, 'activeMs'>

/**
 * Its program is told that the time of this attempt is used up, and may undo what it did, in no journal. So there is no
 * next attempt, whatever becomes of its agent: as where `timeout.wall` is over. A cancel counts more.
 */
export function useUp(run: Moving, { descriptor: { timeoutMs } }: VersionTerms): void {
  run.activeMs = Math.max(run.activeMs, timeoutMs)
  run.timedOut = true
}

/** Whether the time of this attempt is used up. */
export function isUsedUp({ activeMs }: Counted, { descriptor: { timeoutMs } }: VersionTerms): boolean {
  return activeMs >= timeoutMs
}

/** Why a run fails whose time is used up: that of its attempt, or that from its creation on. */
export function outOfTimeError(run: Counted, version: VersionTerms): RunError {
  return isUsedUp(run, version) ? timedOutError(version) : overtimeError(version)
}
