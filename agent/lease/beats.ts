import type { Bell } from '../bell.ts'
import { sinceBootMs } from '../os/process-id.ts'
import type { Lease } from '../takeover/records.ts'

/** Which heartbeats were answered. All times are of the monotonic clock: wall clocks jump. */
export interface Beats {
  /** Numbers a heartbeat that is being sent now, and promises to stop all runs after so long a silence. */
  next(fenceMs: number): number
  answered(n: number): void
  /**
   * When the last heartbeat that was answered had been sent, of this agent or the one before it: every lease that it
   * named holds from there.
   */
  heldFrom(): number
  /** What that one had promised: the coordinator holds the leases for longer. Undefined where there was none. */
  heldMs(): number | undefined
  /** Asks for a heartbeat before its time. */
  readonly bell: Bell
}

/** More than are ever under way; those that were lost with a connection must not pile up. */
const REMEMBERED = 20

/**
 * `former`: what the agent before this one had, while it holds. The ends that it could not tell are told by this one,
 * which may be stopped before any heartbeat of its own is answered.
 */
export function createBeats(bell: Bell, former?: Lease): Beats {
  const sent = new Map<number, { at: number; fenceMs: number }>()
  let count = 0
  let last = former ? asOfHere(former) : { at: -Infinity, fenceMs: Infinity }
  return {
    next(fenceMs) {
      count += 1
      sent.set(count, { at: performance.now(), fenceMs })
      sent.delete(count - REMEMBERED)
      return count
    },
    answered(n) {
      const found = sent.get(n)
      if (found && found.at > last.at) last = found
      sent.delete(n)
    },
    heldFrom: () => last.at,
    heldMs: () => (last.at === -Infinity ? undefined : last.fenceMs),
    bell,
  }
}

/** By the clock of this process. What the machine slept before it is counted, as by the clock that runs from boot. */
function asOfHere({ fromMs, fenceMs }: Lease): { at: number; fenceMs: number } {
  return { at: performance.now() - (sinceBootMs() - fromMs), fenceMs }
}
