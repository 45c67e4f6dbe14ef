import type { RunId } from '@windlass/shared/ids.ts'
import type { Log } from '@windlass/shared/log.ts'

/**
 * Ends of runs with long journals, one at a time: each takes up to a second, and nobody else is to wait for it. In one
 * coordinator; another one waits for the lock of the run.
 */
export interface LongEnds {
  /** Whether the row of this run is locked by the one under way. */
  holds(id: RunId): boolean
  /** Does nothing while another one is under way. A failure is logged. */
  begin(held: readonly RunId[], act: () => Promise<void>): void
  /** Resolves when none is under way. */
  idle(): Promise<void>
}

export function createLongEnds(log: Log): LongEnds {
  let held: readonly RunId[] = []
  let underWay: Promise<void> | undefined

  return {
    holds: (id) => held.includes(id),
    begin(ids, act) {
      if (underWay) return
      held = ids
      underWay = act()
        .catch((error: unknown) => log.warn('timers.failed', { of: 'long ends', error }))
        .finally(() => {
          held = []
          underWay = undefined
        })
    },
    idle: async () => underWay,
  }
}
