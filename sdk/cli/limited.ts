import { pause } from '@windlass/shared/time.ts'
import type { ApiError } from '../client/index.ts'
import { behindBar, lengthText, note } from './terminal.ts'

/** Longest that a command waits in all: a window of the service's limits has 60 s, and the next may be used up too. */
const MOST_WAIT_MS = 90_000
/** For an answer that does not say. */
const WAIT_MS = 1000

/** Waits as long as the service asks for, which is told once. Answers false where that would take too long. */
export function limitedWaits(isJson: boolean): (error: ApiError, signal: AbortSignal | undefined) => Promise<boolean> {
  let leftMs = MOST_WAIT_MS
  let isSaid = false
  return async (error, signal) => {
    const asked = error.detail?.['retryAfterMs']
    const waitMs = typeof asked === 'number' ? Math.max(1, asked) : WAIT_MS
    if (waitMs > leftMs) return false
    leftMs -= waitMs
    if (!isSaid) tell(error, waitMs, isJson)
    isSaid = true
    await pause(waitMs, signal)
    signal?.throwIfAborted()
    return true
  }
}

function tell({ code, message }: ApiError, waitMs: number, isJson: boolean): void {
  if (isJson) note(JSON.stringify({ waiting: { code, message, waitMs } }))
  else note(`${behindBar(message, process.stderr)} Waiting ${lengthText(Math.max(waitMs, 1000))} …`)
}
