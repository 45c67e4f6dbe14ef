import { LRUCache } from 'lru-cache'
import { Fault } from '@windlass/shared/errors.ts'
import type { Strangers } from './strangers.ts'

/** Looks webhooks and connections up by ids that anybody may send. */
export interface SourceGate {
  /**
   * Throws NOT_FOUND where `find` finds nothing, which counts for the address. Throws RATE_LIMITED, without a look-up,
   * when the address has had too many of these; an id that was found not long ago is looked up all the same.
   */
  pass<T>(asked: { id: string; address: string }, find: () => Promise<T | undefined>): Promise<T>
}

/** Number of ids that are remembered; each takes some 200 bytes. */
const MOST_SOURCES = 20_000

export function createSourceGate(strangers: Strangers): SourceGate {
  const known = new LRUCache<string, true>({ max: MOST_SOURCES })
  return {
    async pass({ id, address }, find) {
      const { refusal, settle } = known.has(id) ? UNCOUNTED : await strangers.attempt(address)
      if (refusal) throw refusal
      let isUnknown = false
      try {
        const found = await find()
        isUnknown = found === undefined
        if (found === undefined) {
          known.delete(id)
          throw new Fault('NOT_FOUND')
        }
        known.set(id, true)
        return found
      } finally {
        settle(isUnknown)
      }
    },
  }
}

const UNCOUNTED = { refusal: undefined, settle: () => {} }
