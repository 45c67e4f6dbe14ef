import type { FaultCode } from '../errors.ts'

/** `UNREACHABLE`: no answer came. `BAD_ANSWER`: one came that is not ours, from a proxy for instance. */
export type ApiErrorCode = FaultCode | 'UNREACHABLE' | 'BAD_ANSWER'

/** An answer other than success, or none at all (status 0). */
export class ApiError extends Error {
  readonly status: number
  /** One of `ApiErrorCode`, or one that a newer coordinator knows. */
  readonly code: ApiErrorCode | (string & {})
  readonly detail: Record<string, unknown> | undefined
  readonly requestId: string | undefined
  /** The operation that was called, such as `runs.trigger`. */
  readonly operation: string | undefined
  /** What stood for the names in its path. */
  readonly names: Readonly<Record<string, string>>
  /**
   * The call changes something, and may have done so: its answer was lost, or came from a proxy, or tells of a failure
   * inside. Look before you make the same call again, or give it an idempotency key.
   */
  readonly mayBeDone: boolean

  constructor(
    message: string,
    facts: {
      status: number
      code: string
      detail?: Record<string, unknown>
      requestId?: string
      cause?: unknown
      operation?: string
      names?: Record<string, string>
      mayBeDone?: boolean
    },
  ) {
    super(message, facts.cause === undefined ? undefined : { cause: facts.cause })
    this.name = 'ApiError'
    this.status = facts.status
    this.code = facts.code
    this.detail = facts.detail
    this.requestId = facts.requestId
    this.operation = facts.operation
    this.names = facts.names ?? {}
    this.mayBeDone = facts.mayBeDone ?? false
  }
}
