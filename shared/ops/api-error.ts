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

  constructor(
    message: string,
    facts: { status: number; code: string; detail?: Record<string, unknown>; requestId?: string; cause?: unknown },
  ) {
    super(message, facts.cause === undefined ? undefined : { cause: facts.cause })
    this.name = 'ApiError'
    this.status = facts.status
    this.code = facts.code
    this.detail = facts.detail
    this.requestId = facts.requestId
  }
}
