import { pause } from '@windlass/shared/time.ts'
import type { Deps } from '../deps.ts'

const EVERY_MS = 5_000

/** Notices while a poll is open, or nothing is asked for, that the host cannot take work any more, or can again. */
export async function checkLoop(deps: Pick<Deps, 'checks'>, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    await deps.checks.look('cheap')
    await pause(EVERY_MS, signal)
  }
}
