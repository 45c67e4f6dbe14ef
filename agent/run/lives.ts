import type { Live } from './live.ts'
import { keyOf } from './spool/held.ts'

/** The runs that this agent has taken and not brought to an end. */
export interface Lives {
  readonly size: number
  add(live: Live): void
  /** Its slot, if it had one, is free. */
  remove(live: Live): void
  /** Told after each removal. */
  onFreed(listener: () => void): void
  find(run: string, epoch: number): Live | undefined
  all(): Live[]
  /** How many slots are occupied, by all but those that only wait. */
  computing(): number
  /** Resolves when there is none. */
  empty(): Promise<void>
}

export function createLives(): Lives {
  const byKey = new Map<string, Live>()
  let whenEmpty: (() => void)[] = []
  let onFreed: () => void = () => undefined
  return {
    get size() {
      return byKey.size
    },
    add: (live) => void byKey.set(keyOf(live.offer.run, live.offer.epoch), live),
    remove(live) {
      byKey.delete(keyOf(live.offer.run, live.offer.epoch))
      onFreed()
      if (byKey.size > 0) return
      for (const resolve of whenEmpty) resolve()
      whenEmpty = []
    },
    onFreed: (listener) => void (onFreed = listener),
    find: (run, epoch) => byKey.get(keyOf(run, epoch)),
    all: () => [...byKey.values()],
    computing() {
      let count = 0
      for (const live of byKey.values()) if (!live.isParked) count += live.offer.slots
      return count
    },
    empty: () => (byKey.size === 0 ? Promise.resolve() : new Promise((resolve) => whenEmpty.push(resolve))),
  }
}
