const WINDOW_MS = 60_000

/** Counts of the present minute, by key. */
export interface PerMinute {
  /** Counts one more. False: it is one too many. */
  take(key: string): boolean
  /** One that was taken does not count. Where the minute is over since, the present one has one less. */
  giveBack(key: string): void
}

export function createPerMinute(most: number, now: () => number = () => performance.now()): PerMinute {
  let startedAt = now()
  let counts = new Map<string, number>()
  return {
    take(key) {
      if (now() - startedAt >= WINDOW_MS) {
        startedAt = now()
        counts = new Map()
      }
      const count = (counts.get(key) ?? 0) + 1
      counts.set(key, count)
      return count <= most
    },
    giveBack(key) {
      const count = counts.get(key) ?? 0
      if (count > 1) counts.set(key, count - 1)
      else counts.delete(key)
    },
  }
}
