import { Fault } from '@windlass/shared/errors.ts'

/** How many requests one key or session may have open that wait or stream: each holds memory while it lasts. */
export interface Waiting {
  /** Throws RATE_LIMITED, or answers what is to be called when the request is over. */
  enter(callerId: string): () => void
}

/** A stream ends when its reader leaves; there is no better guess. */
const RETRY_MS = 1000

/** `limit`: 0 for none. */
export function createWaiting(limit: number): Waiting {
  const open = new Map<string, number>()
  return {
    enter(callerId) {
      const count = open.get(callerId) ?? 0
      if (limit > 0 && count >= limit) throw refusal(limit)
      open.set(callerId, count + 1)
      return () => {
        const left = open.get(callerId)! - 1
        if (left > 0) open.set(callerId, left)
        else open.delete(callerId)
      }
    },
  }
}

function refusal(limit: number): Fault {
  const message = `This caller has ${limit} streams and waiting requests open, which is the limit; end some first.`
  return new Fault('RATE_LIMITED', { scope: 'waiting', limit, retryAfterMs: RETRY_MS }, message)
}
