import { LRUCache } from 'lru-cache'

/** Items that fail alone and nobody can tell why: it may be them, and it may be what they need of the server. */
export interface Stubborn {
  /** Answers whether it is the item: it failed so often, for so long, while others were committed. */
  failed(key: string | undefined): boolean
  /** The keys are asked for only where there is a suspect. */
  committed(keys: () => readonly (string | undefined)[]): void
}

interface Suspect {
  since: number
  /** Failures before which others had been committed since the one before. */
  times: number
  /** How much had been committed by the last failure. */
  committed: number
}

const LIMITS = { times: 10, ms: 600_000 }
/** Suspects of a server that refuses everybody. */
const MOST = 10_000

export function createStubborn({ times, ms }: { times: number; ms: number } = LIMITS): Stubborn {
  // Not before the first failure: it takes 220 KiB and a millisecond or more, and every line of commits has one.
  let suspects: LRUCache<string, Suspect> | undefined
  let committed = 0
  return {
    failed(key) {
      if (key === undefined) return false
      suspects ??= new LRUCache({ max: MOST })
      const suspect = suspects.get(key) ?? { since: performance.now(), times: 1, committed }
      suspects.set(key, suspect)
      // A server that takes nothing of anybody says nothing of this one.
      if (committed === suspect.committed) return false
      suspect.times++
      suspect.committed = committed
      return suspect.times >= times && performance.now() - suspect.since >= ms
    },
    committed(keys) {
      committed++
      if (suspects?.size) for (const key of keys()) if (key !== undefined) suspects.delete(key)
    },
  }
}
