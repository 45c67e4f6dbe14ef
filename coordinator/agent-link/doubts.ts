import type { RunnerId } from '@windlass/shared/ids.ts'

/**
 * Doubts about machines that were started anew, and whose predecessor was heard lately. It may be a clone, whose
 * original goes on; or the host was cut off and came back soon, and what it had said before was perhaps read late, as
 * while the coordinator stood still.
 */
export interface Doubts {
  /** True when the predecessor was heard again, long after this boot first asked: it goes on. */
  isClone(runnerId: RunnerId, boot: string, heardAgoMs: number): boolean
}

/** What lay in buffers when the boot first asked is read by then. */
const LATE_MS = 15_000
/** After it a boot is forgotten, and judged anew when it asks again. */
const FORGET_MS = 600_000

export function createDoubts(now: () => number = () => performance.now()): Doubts {
  /** When each boot of a runner asked first. Those that did so before others stand before them. */
  const asked = new Map<string, number>()

  function forget(): void {
    for (const [boot, at] of asked) {
      if (at > now() - FORGET_MS) return
      asked.delete(boot)
    }
  }

  return {
    isClone(runnerId, boot, heardAgoMs) {
      forget()
      const key = `${runnerId} ${boot}`
      const first = asked.get(key) ?? now()
      asked.set(key, first)
      // By a clock of the database that was ahead, it was heard at a time which is still to come.
      return heardAgoMs >= 0 && now() - heardAgoMs > first + LATE_MS
    },
  }
}
