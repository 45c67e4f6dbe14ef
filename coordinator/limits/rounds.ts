import type { Seats } from './seats.ts'

/** Looks at something that changes, one of each key at a time. */
export interface Rounds {
  /**
   * Resolves with what a look has found that began after this call. All who ask before it begins share it: the first
   * one's `look` is executed, so those of one key find things of one type.
   */
  share<T>(key: string, orgId: string, look: () => Promise<T>): Promise<T>
}

/** Each look takes a seat of its org. */
export function createRounds(seats: Seats): Rounds {
  const waiting = new Map<string, Promise<unknown>>()
  /** Resolved when they end, in whatever way. */
  const underWay = new Map<string, Promise<void>>()

  async function round<T>(key: string, orgId: string, look: () => Promise<T>): Promise<T> {
    await underWay.get(key)
    const leave = await seats.take(orgId)
    const { promise, resolve } = Promise.withResolvers<void>()
    underWay.set(key, promise)
    waiting.delete(key)
    try {
      return await look()
    } finally {
      underWay.delete(key)
      leave()
      resolve()
    }
  }

  return {
    share<T>(key: string, orgId: string, look: () => Promise<T>) {
      const next = (waiting.get(key) as Promise<T> | undefined) ?? round(key, orgId, look)
      waiting.set(key, next)
      return next
    },
  }
}
