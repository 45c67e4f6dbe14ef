import type { OrgId } from '@windlass/shared/ids.ts'
import type { Log } from '@windlass/shared/log.ts'
import { createPerMinute } from '../limits/per-minute.ts'
import { createSample } from '../limits/sample.ts'

/**
 * How many runs of an org go back at once that its agents were given, and for which no crash is counted: they declined
 * them, were gone when they were to be told, connected without them, said that they cannot or were stopped, or led them
 * back to where they stood and gave them up again. Each costs a claim and two events of the run, and the next poll gets
 * the same run: agents that take nothing had 4,600 a second between them. What is beyond this waits: an offer until it
 * runs out, for which its runner is blamed.
 */
export interface Returns {
  /** False: it is one too many of this minute. */
  take(orgId: OrgId): boolean
  /** What `act` takes counts only where it succeeds: a transaction that fails is tried again, or in halves. */
  during<T>(act: (take: Returns['take']) => Promise<T>): Promise<T>
}

/** As many as an org may send requests. A fleet of thousands that is stopped at once gives back one each. */
const MOST = 6000

export function createReturns(log: Log, most = MOST): Returns {
  const perMinute = createPerMinute(most)
  const lines = createSample()
  const take = (orgId: OrgId) => {
    if (perMinute.take(orgId)) return true
    const facts = lines(orgId)
    if (facts) log.warn('offers.returned', { orgId, most, ...facts })
    return false
  }
  return {
    take,
    async during(act) {
      const taken: OrgId[] = []
      const noted = (orgId: OrgId) => {
        taken.push(orgId)
        return take(orgId)
      }
      try {
        return await act(noted)
      } catch (error) {
        for (const orgId of taken) perMinute.giveBack(orgId)
        throw error
      }
    },
  }
}
