import { ApiError } from '../client/index.ts'
import { detailOf, Failure, messageOf, reportOf } from './failure.ts'
import { withoutAdvice } from './way-out.ts'

interface Begun {
  /** What was begun, and what of it could not be read. */
  what: string
  /** How to go on with it. */
  next: string
  /** Its id, for a script. */
  detail: Record<string, unknown>
}

/**
 * What failed behind something that has been begun. The way out of the error alone may be to send the same command
 * again, which would begin it a second time.
 */
export function begun(error: unknown, { what, next, detail }: Begun): unknown {
  if (!(error instanceof ApiError)) return error
  const { exit } = reportOf(error, '')
  return new Failure(`${what}: ${withoutAdvice(messageOf(error))}`, next, exit, {
    code: error.code,
    detail: { ...detailOf(error), ...detail },
  })
}
