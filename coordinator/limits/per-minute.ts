const WINDOW_MS = 60_000

/** Counts of the present minute, by key. */
export interface PerMinute {
  /** Counts one more. False: it is one too many. */
  take(key: string): boolean
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
  }
}
