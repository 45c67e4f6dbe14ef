import type { OrgId, RunId } from '@windlass/shared/ids.ts'
import type { Log } from '@windlass/shared/log.ts'
import { pause } from '@windlass/shared/time.ts'

/**
 * Ends of runs with long journals, one at a time: each takes up to a second, and nobody else is to wait for it. In one
 * coordinator; another one waits for the lock of the run.
 */
export interface LongEnds {
  /** The row of this run is locked by the one under way. */
  holds(id: RunId): boolean
  /** Of these the first one of the org whose last turn was longest ago. */
  inTurn<T extends { orgId: OrgId }>(waiting: readonly T[]): T | undefined
  /** Does nothing while another one is under way. A failure is logged, and followed by a rest. */
  begin(orgId: OrgId, held: readonly RunId[], act: () => Promise<void>): void
  /** Resolves when none is under way. */
  idle(): Promise<void>
}

/** Of orgs that had their turns. */
const MOST_REMEMBERED = 1000
const AFTER_FAILURE_MS = 500

export function createLongEnds(log: Log): LongEnds {
  /** In the order of their last turns. */
  const served = new Set<OrgId>()
  let held: readonly RunId[] = []
  let underWay: Promise<void> | undefined

  async function attempt(act: () => Promise<void>): Promise<void> {
    try {
      await act()
    } catch (error) {
      log.warn('timers.failed', { of: 'long ends', error })
      await pause(AFTER_FAILURE_MS)
    }
    held = []
    underWay = undefined
  }

  return {
    holds: (id) => held.includes(id),
    inTurn(waiting) {
      const newcomer = waiting.find(({ orgId }) => !served.has(orgId))
      if (newcomer) return newcomer
      const order = [...served]
      return waiting.toSorted((a, b) => order.indexOf(a.orgId) - order.indexOf(b.orgId))[0]
    },
    begin(orgId, ids, act) {
      if (underWay) return
      served.delete(orgId)
      served.add(orgId)
      const [oldest] = served
      if (oldest !== undefined && served.size > MOST_REMEMBERED) served.delete(oldest)
      held = ids
      underWay = attempt(act)
    },
    idle: async () => underWay,
  }
}
