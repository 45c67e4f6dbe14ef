import { pause } from '@windlass/shared/time.ts'
import type { Checks } from '../checks/checks.ts'
import type { Paces } from '../paces.ts'

/** Notices while a poll is open, or nothing is asked for, that the host cannot take work any more, or can again. */
export async function checkLoop(
  deps: { checks: Checks; config: { paces: Pick<Paces, 'checkMs'> } },
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    await deps.checks.look('cheap')
    await pause(deps.config.paces.checkMs, signal)
  }
}
