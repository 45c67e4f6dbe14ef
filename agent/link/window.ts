import type { Held } from '../run/spool/held.ts'

/** What an entry costs the coordinator, however short it is: of empty lines some 7,000 of a placement are under way. */
const ENTRY_CHARS = 256

/** What a placement may have under way in any case: some lines and a step. */
const LEAST = 32 * 1024
/** As long as all have no more than so many windows. The coordinator takes 40 Mi characters of an agent. */
const MOST_LIMITS = 4

/** What so many entries with so much text take of the window. */
export const costOf = (entries: number, chars: number): number => chars + entries * ENTRY_CHARS

/**
 * How much may be under way, sent and not yet acknowledged. The coordinator keeps all of it in its memory until it is
 * committed, and programs can print far faster than a database writes; here it waits on disk instead.
 *
 * What one placement has under way is at most what is left of the window: half of it alone, a third where two have as
 * much as they may. So those whose entries are acknowledged late, each as late as it can be, leave room for the others.
 */
export interface Window {
  /** Counts what is being sent, with what it costs. */
  add(held: Held, last: number, cost: number): void
  /** What the placement may send now; 0 or less: nothing until something is acknowledged. */
  room(held: Held): number
  /** Resolves when there may be more room, or somebody else who has some. */
  change(): Promise<void>
  /** Ends what waits for a change. */
  wake(): void
  /** Looks at what has been answered by now. True when there is more room than before. */
  settle(): boolean
  /** Forgets what is sent again: nobody will answer what came of it before. */
  takeBack(): void
  /** Forgets everything: the connection it was sent on is gone. */
  clear(): void
}

interface Own {
  sent: { last: number; cost: number }[]
  cost: number
}

/** `isKnown` is false for placements that are over: nobody will acknowledge what was sent for them. */
export function openWindow(limit: number, isKnown: (held: Held) => boolean): Window {
  const underWay = new Map<Held, Own>()
  let total = 0
  let changed = Promise.withResolvers<void>()

  function wake(): void {
    changed.resolve()
    changed = Promise.withResolvers()
  }

  /** Answers come in the order of what was sent of a placement. */
  function takeAnswered(held: Held, own: Own): void {
    const isAnswered = isKnown(held) ? (last: number) => last <= held.acked : () => true
    const open = own.sent.findIndex(({ last }) => !isAnswered(last))
    for (const { cost } of own.sent.splice(0, open === -1 ? own.sent.length : open)) {
      own.cost -= cost
      total -= cost
    }
    if (open === -1) underWay.delete(held)
  }

  return {
    add(held, last, cost) {
      const own = underWay.get(held) ?? { sent: [], cost: 0 }
      underWay.set(held, own)
      own.sent.push({ last, cost })
      own.cost += cost
      total += cost
    },
    room(held) {
      const own = underWay.get(held)?.cost ?? 0
      const left = limit - total - own
      // Batches pass the share of their placements. One that has next to nothing under way has its turn all the same.
      return total < MOST_LIMITS * limit ? Math.max(left, Math.min(LEAST, limit) - own) : left
    },
    change: () => changed.promise,
    wake,
    settle() {
      const before = total
      for (const [held, own] of underWay) takeAnswered(held, own)
      if (total < before) wake()
      return total < before
    },
    takeBack() {
      for (const [held, own] of underWay) {
        takeAnswered(held, own)
        const again = own.sent.filter(({ last }) => last > held.sent)
        const cost = again.reduce((sum, each) => sum + each.cost, 0)
        own.sent = own.sent.filter(({ last }) => last <= held.sent)
        own.cost -= cost
        total -= cost
        if (own.sent.length === 0) underWay.delete(held)
      }
      wake()
    },
    clear() {
      underWay.clear()
      total = 0
      wake()
    },
  }
}
