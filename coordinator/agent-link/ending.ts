import type { Ending } from '@windlass/shared/model/ending.ts'
import { isInt, isText } from './value-checks.ts'

type Fields = Record<string, unknown>

/**
 * A way to end that this list lacks does not compile. What programs say themselves, their output and their errors, is not
 * judged here: a program must not be able to cut off its agent.
 */
const FITS: { [How in Ending['how']]: (ending: Fields) => boolean } = {
  returned: ({ outputText }) => isText(outputText),
  threw: ({ error }) => typeof error === 'object' && error !== null,
  exited: ({ exitCode }) => isInt(exitCode),
  killed: ({ signal, reason }) => isText(signal) && (reason === undefined || isText(reason)),
  'timed-out': ({ timeoutMs }) => isInt(timeoutMs, 0),
  cancelled: ({ forced }) => typeof forced === 'boolean',
  lost: ({ reason }) => isText(reason),
  unready: ({ reason }) => isText(reason),
  evicted: ({ reason }) => isText(reason),
  blocked: ({ mismatch }) => typeof mismatch === 'object' && mismatch !== null,
}

export function isEnding(value: unknown): value is Ending {
  const ending = value as Fields | null
  const how = ending?.how
  return typeof how === 'string' && Object.hasOwn(FITS, how) && FITS[how as Ending['how']](ending!)
}
