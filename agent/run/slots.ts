import type { Bell } from '../bell.ts'

/** How much may compute at once, and who is next when something stops. */
export interface Slots {
  total(): number
  /** What new work may be asked for. */
  free(): number
  /** Calls `begin` at once or when there are so many; it then computes or has thought better of it. Answers how to give up. */
  take(begin: () => void, count?: number): () => void
  /** Somebody has stopped computing, or there are more of them now. */
  freed(): void
}

interface Waiting {
  begin(): void
  count: number
}

interface SlotsOptions {
  /** It may change while programs compute: then nothing begins until there are few enough. */
  total: () => number
  /** How many are taken. */
  computing: () => number
  bell: Bell
}

/** Those who wait for slots come before new work, for which the bell is rung; none overtakes one who needs more. */
export function createSlots({ total, computing, bell }: SlotsOptions): Slots {
  let waiting: Waiting[] = []
  const fits = ({ count }: Waiting) => computing() + needed(count) <= total()
  // A run that needs more than this machine has got here because there were more: it has the machine to itself.
  const needed = (count: number) => Math.min(count, total())
  function freed(): void {
    for (let next = waiting[0]; next && fits(next); next = waiting[0]) {
      waiting.shift()
      next.begin()
    }
    bell.ring()
  }
  return {
    total,
    free: () => Math.max(0, total() - computing() - waiting.reduce((sum, each) => sum + each.count, 0)),
    take(begin, count = 1) {
      const mine = { begin, count }
      if (waiting.length === 0 && fits(mine)) begin()
      else waiting.push(mine)
      return () => {
        if (!waiting.includes(mine)) return
        waiting = waiting.filter((each) => each !== mine)
        // What stood behind it may need less.
        freed()
      }
    },
    freed,
  }
}
