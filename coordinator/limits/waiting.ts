import { Fault } from '@windlass/shared/errors.ts'

/** How many requests may be open that wait or stream: each holds memory while it lasts. */
export interface Waiting {
  /** Throws RATE_LIMITED, or answers what is to be called when the request is over. */
  enter(caller: { readonly id: string; readonly orgId: string }): () => void
}

interface WaitingLimits {
  /** Of one key or session; 0: no limit. */
  caller: number
  /** Of all keys and sessions of an org; 0: no limit. */
  org: number
}

/** A stream ends when its reader leaves; there is no better guess. */
const RETRY_MS = 1000

export function createWaiting(limits: WaitingLimits): Waiting {
  const [callers, orgs] = [new Map<string, number>(), new Map<string, number>()]
  return {
    enter({ id, orgId }) {
      refuseFull(callers.get(id), limits.caller, { who: 'This caller has', scope: 'waiting' })
      refuseFull(orgs.get(orgId), limits.org, { who: 'All callers of this org have', scope: 'org_waiting' })
      count(callers, id, 1)
      count(orgs, orgId, 1)
      return () => {
        count(callers, id, -1)
        count(orgs, orgId, -1)
      }
    },
  }
}

function count(open: Map<string, number>, id: string, more: number): void {
  const sum = (open.get(id) ?? 0) + more
  if (sum > 0) open.set(id, sum)
  else open.delete(id)
}

function refuseFull(open = 0, limit: number, { who, scope }: { who: string; scope: string }): void {
  if (limit === 0 || open < limit) return
  const message = `${who} ${limit} streams and waiting requests open, which is the limit; end some first.`
  throw new Fault('RATE_LIMITED', { scope, limit, retryAfterMs: RETRY_MS }, message)
}
