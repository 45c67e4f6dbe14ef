/** Limits what the values of each run may cost in a window of time. */
export interface Budget {
  hasLeft(run: string): boolean
  spend(run: string, ms: number): void
}

/** Number of runs that are remembered; the oldest is forgotten first. */
const MOST_RUNS = 20_000

/** `now`: in milliseconds, by which a window ends. */
export function createBudget(
  { ms, windowMs }: { ms: number; windowMs: number },
  now: () => number = () => performance.now(),
): Budget {
  const spent = new Map<string, { since: number; ms: number }>()

  function current(run: string) {
    const known = spent.get(run)
    if (known && now() - known.since < windowMs) return known
    spent.delete(run)
    return undefined
  }

  return {
    hasLeft: (run) => (current(run)?.ms ?? 0) < ms,
    spend(run, more) {
      const known = current(run)
      if (known) {
        known.ms += more
        return
      }
      spent.set(run, { since: now(), ms: more })
      for (const oldest of spent.keys()) {
        if (spent.size <= MOST_RUNS) break
        spent.delete(oldest)
      }
    },
  }
}
