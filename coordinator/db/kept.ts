/** Answers of the database that are asked for all the time, each kept for a moment. */
export interface Kept<K, V> {
  of(key: K): Promise<V>
  forget(key: K): void
}

interface KeptOptions<K, V> {
  read: (key: K) => Promise<V>
  /** A change made through another coordinator is seen after this long at the latest. */
  freshMs: number
  /** At so many all are dropped. */
  most: number
}

export function createKept<K, V>({ read, freshMs, most }: KeptOptions<K, V>): Kept<K, V> {
  const kept = new Map<K, { at: number; found: Promise<V> }>()
  return {
    of(key) {
      const known = kept.get(key)
      if (known && performance.now() - known.at < freshMs) return known.found
      const found = read(key)
      if (kept.size >= most) kept.clear()
      kept.set(key, { at: performance.now(), found })
      found.catch(() => kept.get(key)?.found === found && kept.delete(key))
      return found
    },
    forget: (key) => void kept.delete(key),
  }
}
