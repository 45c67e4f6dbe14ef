import { backoffMs, pause } from '@windlass/shared/time.ts'
import type { Deps } from '../deps.ts'

const LONGEST_LOOK_MS = 60_000
/** Until the coordinator has said how old keys may be. */
const UNTOLD_LOOK_MS = 1000
const BACKOFF = { firstMs: 1000, capMs: 600_000 }

/** Signs with a new key from time to time, so that one that was copied is of use for a day at most. */
export async function renewKeyLoop(deps: Deps, signal: AbortSignal): Promise<void> {
  for (let failures = 0; !signal.aborted;) {
    const everyMs = deps.settings.current.renewKeyMs ?? Infinity
    if (deps.link.isReady && everyMs < Infinity && (deps.keys.isPending() || deps.keys.ageMs() > everyMs)) {
      const isDone = await renewKey(deps, signal)
      failures = isDone ? 0 : failures + 1
    }
    const waitMs = everyMs === Infinity ? UNTOLD_LOOK_MS : Math.min(LONGEST_LOOK_MS, everyMs / 10)
    await pause(failures > 0 ? Math.max(waitMs, backoffMs(failures, BACKOFF)) : waitMs, signal)
  }
}

async function renewKey({ keys, rest, log }: Deps, signal: AbortSignal): Promise<boolean> {
  try {
    await keys.change((publicKey) => rest.renewKey(publicKey, signal))
    log('key.renewed')
    return true
  } catch (error) {
    // The present one goes on to serve.
    if (!signal.aborted)
      log.warn('key.renewal.failed', { reason: error instanceof Error ? error.message : String(error) })
    return false
  }
}
