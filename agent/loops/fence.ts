import { pause } from '@windlass/shared/time.ts'
import { fence, type FenceNeeds } from '../lease/fence.ts'

/** Ends programs whose lease may be over soon: the coordinator gives their runs to others a while later, never before. */
export async function fenceLoop(deps: FenceNeeds, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    fence(deps)
    await pause(Math.min(1000, Math.max(10, deps.settings.current.fenceMs / 20)), signal)
  }
}
