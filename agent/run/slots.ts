import type { Bell } from '../bell.ts'

/** How many programs may compute at once, and who is next when one stops. */
export interface Slots {
  /** What new work may be asked for. */
  free(): number
  /** Calls `begin` at once or when its turn comes; it then computes or has thought better of it. Answers how to give up. */
  take(begin: () => void): () => void
  /** Somebody has stopped computing. */
  freed(): void
}

/** `computing` counts who has a slot. Those who wait for one come before new work, for which the bell is rung. */
export function createSlots({ total, computing, bell }: { total: number; computing: () => number; bell: Bell }): Slots {
  let waiting: (() => void)[] = []
  return {
    free: () => Math.max(0, total - computing() - waiting.length),
    take(begin) {
      if (waiting.length === 0 && computing() < total) begin()
      else waiting.push(begin)
      return () => (waiting = waiting.filter((each) => each !== begin))
    },
    freed() {
      while (computing() < total) {
        const next = waiting.shift()
        if (!next) break
        next()
      }
      bell.ring()
    },
  }
}
