/** Timers that end together. */
export interface Timers {
  later(ms: number, act: () => void): void
  clear(): void
}

const LONGEST_MS = 2 ** 31 - 1

export function createTimers(): Timers {
  const timers = new Set<NodeJS.Timeout>()
  return {
    later(ms, act) {
      const fire = () => {
        timers.delete(timer)
        act()
      }
      const timer = setTimeout(fire, Math.min(ms, LONGEST_MS))
      timers.add(timer)
    },
    clear() {
      for (const timer of timers) clearTimeout(timer)
      timers.clear()
    },
  }
}
