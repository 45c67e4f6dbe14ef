/** Between two tries to connect, of an agent that has nothing to say. */
const LONGEST_PAUSE_MS = 30_000

/**
 * Upper bound for the pause before the next try. What executes has a fence, and its agent may have been silent for a
 * heartbeat when the connection was lost. What has ended is given to another agent and executed once more, unless the
 * coordinator hears of it before the lease is over.
 */
export function longestPauseMs({ agentRuns, spool, settings }: Busy): number {
  const isBusy = agentRuns.size > 0 || spool.held().length > 0
  return isBusy ? Math.min(LONGEST_PAUSE_MS, settings.current.fenceMs / 10) : LONGEST_PAUSE_MS
}

interface Busy {
  agentRuns: { readonly size: number }
  spool: { held(): readonly unknown[] }
  settings: { readonly current: { fenceMs: number } }
}
