import type { Seats } from './seats.ts'

/** Looks at something that changes, few of each key at a time. */
export interface Rounds {
  /**
   * Resolves with what a look has found that began after this call. All who ask before it begins share it: the first
   * one's `look` is executed, so those of one key find things of one type.
   */
  share<T>(key: string, orgId: string, look: () => Promise<T>): Promise<T>
}

/** Each look takes a seat of its org; `atOnce`: those of one key that may be under way, 1 where it is left out. */
export function createRounds(seats: Seats, { atOnce = 1 } = {}): Rounds {
  const waiting = new Map<string, Promise<unknown>>()
  const slots = new Map<string, { taken: number; handOver?: (() => void) | undefined }>()

  /** At most one look of a key asks at a time: the others share it. */
  async function takeSlot(key: string): Promise<() => void> {
    const own = slots.get(key) ?? { taken: 0 }
    slots.set(key, own)
    if (own.taken < atOnce) own.taken++
    else await new Promise<void>((resolve) => (own.handOver = resolve))
    return () => {
      const { handOver } = own
      own.handOver = undefined
      if (handOver) return handOver()
      if (--own.taken === 0) slots.delete(key)
    }
  }

  async function round<T>(key: string, orgId: string, look: () => Promise<T>): Promise<T> {
    const end = await takeSlot(key)
    const leave = await seats.take(orgId)
    waiting.delete(key)
    try {
      return await look()
    } finally {
      leave()
      end()
    }
  }

  return {
    share<T>(key: string, orgId: string, look: () => Promise<T>) {
      const next = (waiting.get(key) as Promise<T> | undefined) ?? round(key, orgId, look)
      waiting.set(key, next)
      return next
    },
  }
}
