import { pause } from '@windlass/shared/time.ts'
import type { Deps } from '../deps.ts'

/** Notices while a poll is open, or nothing is asked for, that the host cannot take work any more, or can again. */
export async function checkLoop(deps: Pick<Deps, 'checks' | 'config'>, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    await deps.checks.look('cheap')
    await pause(deps.config.paces.checkMs, signal)
  }
}
