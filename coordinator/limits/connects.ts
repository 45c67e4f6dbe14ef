import { Fault } from '@windlass/shared/errors.ts'
import type { RunnerIdentity } from '../actor.ts'
import { createPerMinute } from './per-minute.ts'

/** Bounds how often agents connect: each hello costs a millisecond of the coordinator, and one of the database. */
export interface Connects {
  /** Throws RATE_LIMITED where it is one too many. */
  take(runner: Pick<RunnerIdentity, 'id' | 'orgId'>): void
  /**
   * Its connection came to nothing because the database took no writes: its org has one more, the runner itself has
   * not. The org's agents all try again every few seconds then, and each needs a connection once the database is back.
   */
  giveBack(runner: Pick<RunnerIdentity, 'orgId'>): void
}

/**
 * In a minute. An agent with runs whose connection ends at once comes again 27 times, one without ten times. An org
 * has 20,000 runners at most: each of them may connect twice, and all of 1,400 whose connections do not hold. A hundred
 * runners that connected 820 times a second doubled the time of others' triggers, and more.
 */
const MOST = { runner: 60, org: 40_000 }
const WINDOW_MS = 60_000
/** Agents wait by themselves, up to 5 s while they have runs and else up to 30 s. */
const RETRY_MS = 10_000

export function createConnects(most = MOST): Connects {
  const counts = { runner: createPerMinute(most.runner), org: createPerMinute(most.org) }
  const tooMany = (scope: 'runner' | 'org') => {
    const detail = { scope, limit: most[scope], windowMs: WINDOW_MS, retryAfterMs: RETRY_MS }
    const whose = scope === 'runner' ? 'This runner has' : 'The runners of this org have'
    return new Fault(
      'RATE_LIMITED',
      detail,
      `${whose} connected ${most[scope]} times in a minute; wait for some seconds.`,
    )
  }
  return {
    take({ id, orgId }) {
      // One that connects too often is not to use up what its org has.
      if (!counts.runner.take(id)) throw tooMany('runner')
      if (!counts.org.take(orgId)) throw tooMany('org')
    },
    giveBack: ({ orgId }) => counts.org.giveBack(orgId),
  }
}
