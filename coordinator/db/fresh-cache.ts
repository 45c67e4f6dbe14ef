import { LRUCache } from 'lru-cache'

/** Answers of the database that are asked for all the time, each kept for a moment. */
export interface FreshCache<K, V> {
  of(key: K): Promise<V>
  forget(key: K): void
}

interface FreshCacheOptions<K, V> {
  read: (key: K) => Promise<V>
  /** A change made through another coordinator is seen after this long at the latest. */
  freshMs: number
  /** Those that were asked for last. */
  most: number
  /** Whether the last answer serves on where reading fails like this; without it the failure is told. */
  mayBeOld?: (error: unknown) => boolean
}

export function createFreshCache<K extends string, V>({
  read,
  freshMs,
  most,
  mayBeOld,
}: FreshCacheOptions<K, V>): FreshCache<K, V> {
  const entries = new LRUCache<K, Promise<V>>({ max: most, ttl: freshMs })
  const last = new LRUCache<K, { value: V }>({ max: most })

  async function orLast(key: K, reading: Promise<V>): Promise<V> {
    const before = last.get(key)
    try {
      return await reading
    } catch (error) {
      if (!before || !mayBeOld?.(error)) throw error
      return before.value
    }
  }

  /** A read may take longer than its answer is fresh. */
  const isOf = (key: K, found: Promise<V>) => entries.peek(key, { allowStale: true }) === found

  /** What was forgotten while it was read is not kept. */
  async function keep(key: K, found: Promise<V>): Promise<void> {
    try {
      const value = await found
      if (mayBeOld && isOf(key, found)) last.set(key, { value })
    } catch {
      if (isOf(key, found)) entries.delete(key)
    }
  }

  return {
    of(key) {
      const known = entries.get(key)
      if (known) return known
      const found = orLast(key, read(key))
      entries.set(key, found)
      void keep(key, found)
      return found
    },
    forget(key) {
      entries.delete(key)
      last.delete(key)
    },
  }
}
