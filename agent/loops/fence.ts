import { pause } from '@windlass/shared/time.ts'
import type { Deps } from '../deps.ts'
import type { Live } from '../run/live.ts'

type FenceDeps = Pick<Deps, 'settings' | 'lives' | 'beats' | 'sleeps' | 'log'>

/** Ends programs whose lease may be over soon: the coordinator gives their runs to others a while later, never before. */
export async function fenceLoop(deps: Deps, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    fence(deps)
    await pause(Math.min(1000, Math.max(10, deps.settings.current.fenceMs / 20)), signal)
  }
}

/** Called as well before anything is said or obeyed by which a lease could seem to hold: a suspended agent must not wake up and renew. */
export function fence(deps: FenceDeps): void {
  deps.sleeps.look()
  const fenceMs = fenceOf(deps)
  const late = deps.lives.all().filter((live) => !live.fate && silenceMs(deps, live) > fenceMs)
  if (late.length === 0) return
  deps.log.error('runs.fenced', { runs: late.map((live) => live.offer.run), fenceMs })
  for (const live of late) live.end('fenced')
}

/** A longer time counts once the coordinator has answered a heartbeat that promised it; a shorter one at once. */
function fenceOf({ settings, beats }: FenceDeps): number {
  return Math.min(settings.current.fenceMs, beats.heldMs() ?? Infinity)
}

/** Since the sending of the last word that is known to have extended the lease. What is not accepted has a deadline of its own. */
function silenceMs({ beats, sleeps }: FenceDeps, live: Live): number {
  if (!live.isAnswered) return 0
  const heldFrom = Math.max(live.acceptSentAt, beats.heldFrom())
  return performance.now() - heldFrom + sleeps.since(heldFrom)
}
