import type { Bell } from '../bell.ts'
import type { Live } from './live.ts'
import { keyOf } from './spool-held.ts'

/** The runs that occupy a slot. */
export interface Lives {
  readonly size: number
  add(live: Live): void
  /** Its slot is free. */
  remove(live: Live): void
  find(run: string, epoch: number): Live | undefined
  all(): Live[]
  /** Resolves when there is none. */
  empty(): Promise<void>
}

export function createLives(slotBell: Bell): Lives {
  const byKey = new Map<string, Live>()
  let whenEmpty: (() => void)[] = []
  return {
    get size() {
      return byKey.size
    },
    add: (live) => void byKey.set(keyOf(live.offer.run, live.offer.epoch), live),
    remove(live) {
      byKey.delete(keyOf(live.offer.run, live.offer.epoch))
      slotBell.ring()
      if (byKey.size > 0) return
      for (const resolve of whenEmpty) resolve()
      whenEmpty = []
    },
    find: (run, epoch) => byKey.get(keyOf(run, epoch)),
    all: () => [...byKey.values()],
    empty: () => (byKey.size === 0 ? Promise.resolve() : new Promise((resolve) => whenEmpty.push(resolve))),
  }
}
