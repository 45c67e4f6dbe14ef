import type { JournalError } from '@windlass/shared/wire/journal.ts'
import { carries } from './stop-errors.ts'

/** Why a run failed, as it stands at the run. */
export interface RunFailure {
  readonly code: string
  readonly message: string
  readonly detail?: Readonly<Record<string, unknown>>
}

/** Nobody answered in time. `detail.inputId` is the question. */
export class InputTimedOutError extends Error {
  override readonly name = 'InputTimedOutError'
  readonly code = 'INPUT_TIMED_OUT'
  readonly detail: Readonly<Record<string, unknown>>

  constructor(message: string, detail: Readonly<Record<string, unknown>> = {}) {
    super(message)
    this.detail = detail
  }

  // A step keeps the code of an error and not its class: what was thrown inside of one is still told apart.
  static override [Symbol.hasInstance](value: unknown): boolean {
    return carries(value, 'INPUT_TIMED_OUT')
  }
}

/**
 * The run that was called has failed.
 *
 * @example
 * import { RunFailedError, workflows } from 'windlass'
 *
 * export async function run(input: { url: string }) {
 *   try {
 *     return await workflows.call('scrape', input)
 *   } catch (error) {
 *     if (!(error instanceof RunFailedError)) throw error
 *     return { failed: error.runId, why: error.error.message }
 *   }
 * }
 */
export class RunFailedError extends Error {
  override readonly name = 'RunFailedError'
  readonly code = 'RUN_FAILED'
  readonly runId: string
  readonly error: RunFailure
  readonly detail: Readonly<Record<string, unknown>>

  constructor(runId: string, error: RunFailure) {
    super(`The run ${runId} failed${becauseOf(error)}`)
    this.runId = runId
    this.error = error
    this.detail = { runId, error }
  }

  static override [Symbol.hasInstance](value: unknown): boolean {
    return carries(value, 'RUN_FAILED')
  }
}

/** A failure goes up through all who called: what is told is where it came from, and not each of them again. */
function becauseOf(error: RunFailure): string {
  let cause = error
  let from: unknown
  let calls = 0
  for (; cause.code === 'RUN_FAILED' && isFailure(cause.detail?.['error']); cause = cause.detail['error']) {
    from = cause.detail['runId']
    calls += 1
  }
  if (calls === 0) return `: ${cause.message}`
  const below = calls === 1 ? 'which it called' : `${calls} calls below it`
  return ` because ${String(from)}, ${below}, failed: ${cause.message}`
}

function isFailure(value: unknown): value is RunFailure {
  return typeof value === 'object' && value !== null && 'code' in value && 'message' in value
}

/** The run that was called has been cancelled. */
export class RunCancelledError extends Error {
  override readonly name = 'RunCancelledError'
  readonly code = 'RUN_CANCELLED'
  readonly runId: string
  readonly detail: Readonly<Record<string, unknown>>

  constructor(runId: string) {
    super(`The run ${runId} was cancelled.`)
    this.runId = runId
    this.detail = { runId }
  }

  static override [Symbol.hasInstance](value: unknown): boolean {
    return carries(value, 'RUN_CANCELLED')
  }
}

/**
 * The call has started no run: there is no such workflow, its input does not fit, and the like. `detail.code` says
 * which.
 */
export class CallRefusedError extends Error {
  override readonly name = 'CallRefusedError'
  readonly code = 'CALL_REFUSED'
  readonly detail: Readonly<Record<string, unknown>>

  constructor(message: string, detail: Readonly<Record<string, unknown>> = {}) {
    super(message)
    this.detail = detail
  }

  static override [Symbol.hasInstance](value: unknown): boolean {
    return carries(value, 'CALL_REFUSED')
  }
}

/** The error of a wait as the program sees it. */
export function reviveError({ name, message, code, detail = {} }: JournalError): Error {
  const runId = String(detail.runId)
  if (code === 'INPUT_TIMED_OUT') return new InputTimedOutError(message, detail)
  if (code === 'RUN_FAILED') return new RunFailedError(runId, failureIn(detail, message))
  if (code === 'RUN_CANCELLED') return new RunCancelledError(runId)
  if (code === 'CALL_REFUSED') return new CallRefusedError(message, detail)
  return Object.assign(new Error(message), { name, code, detail })
}

function failureIn(detail: Record<string, unknown>, message: string): RunFailure {
  return (detail.error as RunFailure | undefined) ?? { code: 'PROGRAM_FAILED', message }
}
