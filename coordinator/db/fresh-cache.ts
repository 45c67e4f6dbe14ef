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
  const kept = new LRUCache<K, Promise<V>>({ max: most, ttl: freshMs })
  return {
    of(key) {
      const known = kept.get(key)
      if (known) return known
      const found = read(key)
      kept.set(key, found)
      found.catch(() => kept.peek(key) === found && kept.delete(key))
      return found
    },
    forget: (key) => void kept.delete(key),
  }
}
