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
}

export function createFreshCache<K extends string, V>({
  read,
  freshMs,
  most,
}: FreshCacheOptions<K, V>): FreshCache<K, V> {
  const entries = new LRUCache<K, Promise<V>>({ max: most, ttl: freshMs })
  return {
    of(key) {
      const known = entries.get(key)
      if (known) return known
      const found = read(key)
      entries.set(key, found)
      found.catch(() => entries.peek(key) === found && entries.delete(key))
      return found
    },
    forget: (key) => void entries.delete(key),
  }
}
