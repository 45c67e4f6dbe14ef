import type { Seats } from './seats.ts'

/** Looks at something that changes, one of each key at a time. */
export interface Rounds {
  /**
   * Resolves when a look has ended that began after this call. All who ask before it begins share it: the first one's
   * `look` is executed.
   */
  share(key: string, orgId: string, look: () => Promise<void>): Promise<void>
}

/** Each look takes a seat of its org. */
export function createRounds(seats: Seats): Rounds {
  const waiting = new Map<string, Promise<void>>()
  /** Resolved when they end, in whatever way. */
  const underWay = new Map<string, Promise<void>>()

  async function round(key: string, orgId: string, look: () => Promise<void>): Promise<void> {
    await underWay.get(key)
    const leave = await seats.take(orgId)
    const { promise, resolve } = Promise.withResolvers<void>()
    underWay.set(key, promise)
    waiting.delete(key)
    try {
      await look()
    } finally {
      underWay.delete(key)
      leave()
      resolve()
    }
  }

  return {
    share(key, orgId, look) {
      const next = waiting.get(key) ?? round(key, orgId, look)
      waiting.set(key, next)
      return next
    },
  }
}
