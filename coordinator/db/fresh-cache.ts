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

  async function readOrLast(key: K): Promise<V> {
    const before = last.get(key)
    try {
      const value = await read(key)
      if (mayBeOld) last.set(key, { value })
      return value
    } catch (error) {
      if (!before || !mayBeOld?.(error)) throw error
      return before.value
    }
  }

  return {
    of(key) {
      const known = entries.get(key)
      if (known) return known
      const found = readOrLast(key)
      entries.set(key, found)
      found.catch(() => entries.peek(key) === found && entries.delete(key))
      return found
    },
    forget(key) {
      entries.delete(key)
      last.delete(key)
    },
  }
}
