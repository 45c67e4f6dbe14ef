import { ApiError } from '@windlass/shared/ops/api-error.ts'
import { isOurs } from '@windlass/shared/ops/whose-answer.ts'
import { backoffMs, pause } from '@windlass/shared/time.ts'

/** How long to go on trying when the server cannot be reached. */
export const PATIENCE_MS = 120_000
export const BACKOFF = { firstMs: 250, capMs: 5_000 }

export interface Patience {
  signal?: AbortSignal
  patienceMs?: number
  /** Told before each new attempt. */
  onReconnect?: (why: string) => void
}

/** The service is elsewhere for good, and so says every answer from here. */
const MOVED: readonly number[] = [301, 308]

/**
 * Whether trying again may help. A refusal of the service (4xx) stays one, but not what a proxy answers in its place; a
 * lost connection is not an `ApiError` at all.
 */
export function isPassing(error: unknown): boolean {
  if (!(error instanceof ApiError)) return true
  if (!isOurs(error)) return !MOVED.includes(error.status)
  return error.status === 429 || error.status >= 500
}

/** Reads something with the patience of a stream: an outage that passes in time is no failure. Only for what reads. */
export async function patiently<T>(read: () => Promise<T>, options: Patience = {}): Promise<T> {
  const { signal, patienceMs = PATIENCE_MS, onReconnect } = options
  const since = performance.now()
  for (let failures = 0; ; failures++) {
    try {
      return await read()
    } catch (error) {
      signal?.throwIfAborted()
      // Calls tell all that may pass as an `ApiError`; anything else is a mistake of ours.
      if (!(error instanceof ApiError) || !isPassing(error)) throw error
      if (performance.now() - since > patienceMs) throw error
      onReconnect?.(error.message)
    }
    await pause(backoffMs(failures, BACKOFF), signal)
    signal?.throwIfAborted()
  }
}
