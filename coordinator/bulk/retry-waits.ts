import type { OrgId } from '@windlass/shared/ids.ts'
import type { Log } from '@windlass/shared/log.ts'

export interface RetryWait {
  /** False: it has failed, which is logged. */
  isDone: Promise<boolean>
}

/**
 * Runs of bulk retries whose inputs are still being judged, one of an org. They are done beside the workers of jobs,
 * which others need: the line of an org for judging may be a minute long.
 */
export interface RetryWaits {
  /** What this org waits for. */
  of(orgId: OrgId): RetryWait | undefined
  add(orgId: OrgId, work: Promise<void>): RetryWait
  /** Does this when that is done, unless it fails. */
  after(wait: RetryWait, act: () => Promise<void>): void
  /** Resolves when nothing is under way. */
  idle(): Promise<void>
}

export function createRetryWaits(log: Log): RetryWaits {
  const waiting = new Map<OrgId, RetryWait>()
  const underWay = new Set<Promise<unknown>>()

  function track<T>(work: Promise<T>): Promise<T> {
    underWay.add(work)
    void work.then(() => underWay.delete(work))
    return work
  }

  function leave(orgId: OrgId, wait: RetryWait): void {
    if (waiting.get(orgId) === wait) waiting.delete(orgId)
  }

  async function attempt(work: Promise<void>): Promise<boolean> {
    try {
      await work
      return true
    } catch (error) {
      log.warn('bulk.failed', { of: 'late retry', error })
      return false
    }
  }

  return {
    of: (orgId) => waiting.get(orgId),
    add(orgId, work) {
      const wait: RetryWait = { isDone: track(attempt(work).finally(() => leave(orgId, wait))) }
      waiting.set(orgId, wait)
      return wait
    },
    after({ isDone }, act) {
      void track(isDone.then((isWell) => isWell && attempt(act())))
    },
    async idle() {
      while (underWay.size > 0) await Promise.all(underWay)
    },
  }
}
