import type { Log } from '@windlass/shared/log.ts'
import { probe } from '@windlass/shared/probe.ts'
import { backoffMs, pause } from '@windlass/shared/time.ts'
import type { AgentSettings } from '@windlass/shared/wire/agent.ts'
import type { Keys } from '../keys.ts'
import type { Link } from '../link/link.ts'
import type { Rest } from '../link/rest.ts'
import type { Paces } from '../paces.ts'

const LONGEST_LOOK_MS = 60_000
const LONGEST_BACKOFF_MS = 600_000

interface RenewKeyNeeds {
  keys: Keys
  rest: Pick<Rest, 'renewKey'>
  link: Pick<Link, 'isReady'>
  settings: { readonly current: AgentSettings }
  config: { paces: Pick<Paces, 'keyMs' | 'keyBackoffMs'> }
  log: Log
}

/** Signs with a new key from time to time, so that one that was copied is of use for a day at most. */
export async function renewKeyLoop(deps: RenewKeyNeeds, signal: AbortSignal): Promise<void> {
  const { keyMs, keyBackoffMs } = deps.config.paces
  const backoff = { firstMs: keyBackoffMs, capMs: LONGEST_BACKOFF_MS }
  for (let failures = 0; !signal.aborted;) {
    const everyMs = deps.settings.current.renewKeyMs ?? Infinity
    if (deps.link.isReady && everyMs < Infinity && (deps.keys.isPending() || deps.keys.ageMs() > everyMs)) {
      const isDone = await renewKey(deps, signal)
      failures = isDone ? 0 : failures + 1
      probe('key.renewed', { isDone })
    }
    const waitMs = everyMs === Infinity ? keyMs : Math.min(LONGEST_LOOK_MS, everyMs / 10)
    await pause(failures > 0 ? Math.max(waitMs, backoffMs(failures, backoff)) : waitMs, signal)
  }
}

async function renewKey({ keys, rest, log }: RenewKeyNeeds, signal: AbortSignal): Promise<boolean> {
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
