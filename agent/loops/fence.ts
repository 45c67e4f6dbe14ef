import { pause } from '@windlass/shared/time.ts'
import type { Deps } from '../deps.ts'
import type { Live } from '../run/live.ts'

/** Ends programs whose lease may be over soon: the coordinator gives their runs to others a while later, never before. */
export async function fenceLoop(deps: Deps, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    const { fenceMs } = deps.settings.current
    const late = deps.lives.all().filter((live) => silenceMs(live, deps.beats.heldFrom()) > fenceMs)
    if (late.length > 0) deps.log.error('runs.fenced', { runs: late.map((live) => live.offer.run), fenceMs })
    for (const live of late) live.end('fenced')
    await pause(Math.min(1000, Math.max(10, fenceMs / 20)), signal)
  }
}

/** Since the sending of the last word that is known to have extended the lease. What is not accepted has a deadline of its own. */
function silenceMs(live: Live, heldFrom: number): number {
  if (!live.isAnswered) return 0
  return performance.now() - Math.max(live.acceptSentAt, heldFrom)
}
