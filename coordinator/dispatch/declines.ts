import type { OrgId } from '@windlass/shared/ids.ts'
import type { Log } from '@windlass/shared/log.ts'
import { createPerMinute } from '../limits/per-minute.ts'
import { createSample } from '../limits/sample.ts'

/**
 * How many offers of an org go back at once because its agents decline them. Each costs a claim and two events of the
 * run, and the next poll gets the same run: agents that take nothing had 4,600 a second between them. What is declined
 * beyond this runs out, for which its runner is blamed.
 */
export interface Declines {
  /** False: it is one too many of this minute. */
  take(orgId: OrgId): boolean
}

/** A fleet of a thousand that is stopped at once declines one each. */
const MOST = 1000

export function createDeclines(log: Log, most = MOST): Declines {
  const perMinute = createPerMinute(most)
  const lines = createSample()
  return {
    take(orgId) {
      if (perMinute.take(orgId)) return true
      const facts = lines(orgId)
      if (facts) log.warn('offers.declined', { orgId, most, ...facts })
      return false
    },
  }
}
