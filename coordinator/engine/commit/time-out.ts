import { RUN_ERRORS, type RunErrorCode } from '@windlass/shared/errors.ts'
import { isFinal, isSuspended, type RunError } from '@windlass/shared/model/run.ts'
import type { VersionTerms } from '../../workflows/terms.ts'
import { fail, mayTimeOutInQueue } from '../rules/transitions.ts'
import type { Moving } from '../rules/run.ts'
import { overtimeError } from '../rules/run-errors.ts'

/**
 * The time that a descriptor gives a run is used up. Without a process it fails here and now; with one it fails when the process, which
 * is told to stop, has come to its end.
 */
export function timeOut(run: Moving, kind: 'queue-timeout' | 'wall-timeout', at: number, version: VersionTerms): void {
  if (isFinal(run.status) || run.status === 'cancelling') return
  if (kind === 'queue-timeout') {
    if (run.status === 'queued' && mayTimeOutInQueue(run)) fail(run, at, queueError(version))
    return
  }
  if (run.status === 'queued' || (isSuspended(run.status) && run.place === null))
    return fail(run, at, overtimeError(version))
  run.timedOut = true
  run.isMoved = true
}

function queueError({ descriptor: { queueTimeoutMs } }: VersionTerms): RunError {
  const code: RunErrorCode = 'RUN_TIMED_OUT'
  const message = `${RUN_ERRORS[code]} No runner had begun it ${queueTimeoutMs} ms after it entered the queue. Add runners or slots, raise \`concurrency\`, or raise \`timeout.queue\` in workflow.jsonc.`
  return { code, message, detail: { queueTimeoutMs } }
}
