/** Keeps the things that were used last. */
export function recent<T>(most: number) {
  const entries = new Map<string, T>()
  return {
    get(key: string): T | undefined {
      const found = entries.get(key)
      if (found === undefined) return undefined
      // Taken out and put in again: the oldest key is then the one that was not used for longest.
      entries.delete(key)
      entries.set(key, found)
      return found
    },
    set(key: string, value: T): T {
      entries.delete(key)
      entries.set(key, value)
      if (entries.size > most) entries.delete(entries.keys().next().value!)
      return value
    },
  }
}
