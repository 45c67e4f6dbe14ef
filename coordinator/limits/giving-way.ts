import { createBySize } from './by-size.ts'

/** A body that may have to give way to others. */
interface Giving {
  /** Gives its room back. */
  giveWay: () => void
  /** When it began to come. Left out: it has come, and only waits. */
  since?: number
  bytes: number
}

/** Those that may give way: bodies that are still coming in, and those that have come and only wait. */
export interface GivingWay {
  add(unit: string, body: object, one: Giving): void
  remove(unit: string, body: object): void
  /** What the unit holds has changed. */
  rank(unit: string): void
  /** Until there is room, or nobody is left who gives way to the one that asks. */
  makeRoom(asking: object, isThere: () => boolean): void
}

/** A body that is younger has no rate yet. */
const YOUNG_MS = 5_000
/** Bodies that are looked at for the slowest: tens of thousands may come at once. */
const MOST_LOOKS = 1000

type Found = [unit: string, body: object, one: Giving]

/** A unit is what bytes are counted by: an address or an org. */
export function createGivingWay(heldBy: (unit: string) => number, now: () => number): GivingWay {
  const coming = createQueues(heldBy)
  const waiting = createQueues(heldBy)
  const queuesOf = ({ since }: Giving) => (since === undefined ? waiting : coming)

  /** The body with the lowest rate. One that stalls holds its room for as long as its sender likes. */
  function slowest(): Found | undefined {
    let found: Found | undefined
    let least = Infinity
    let looks = 0
    for (const [unit, body, one] of coming.all()) {
      if (looks++ >= MOST_LOOKS) return found
      const ms = now() - one.since!
      if (ms < YOUNG_MS || one.bytes / ms >= least) continue
      least = one.bytes / ms
      found = [unit, body, one]
    }
    return found
  }

  /** What waits has cost its sender all of its way: where both have as much, what is coming gives way. */
  function firstOfMost(): Found | undefined {
    const [comes, waits] = [coming.firstOfMost(), waiting.firstOfMost()]
    if (!comes || !waits) return comes ?? waits
    return heldBy(waits[0]) > heldBy(comes[0]) ? waits : comes
  }

  return {
    add: (unit, body, one) => queuesOf(one).add(unit, body, one),
    remove(unit, body) {
      coming.remove(unit, body)
      waiting.remove(unit, body)
    },
    rank(unit) {
      coming.rank(unit)
      waiting.rank(unit)
    },
    makeRoom(asking, isThere) {
      let maySomeBeSlow = true
      while (!isThere()) {
        const slow: Found | undefined = maySomeBeSlow ? slowest() : undefined
        maySomeBeSlow = slow !== undefined
        const found = slow ?? firstOfMost()
        if (!found || found[1] === asking) return
        const [unit, body, one] = found
        queuesOf(one).remove(unit, body)
        one.giveWay()
      }
    },
  }
}

/** Bodies by unit, the longest there first. */
function createQueues(heldBy: (unit: string) => number) {
  const byUnit = new Map<string, Map<object, Giving>>()
  const bySize = createBySize()

  function rank(unit: string): void {
    if (byUnit.has(unit)) bySize.set(unit, heldBy(unit))
    else bySize.remove(unit)
  }

  return {
    rank,
    add(unit: string, body: object, one: Giving): void {
      const ofUnit = byUnit.get(unit) ?? new Map<object, Giving>()
      byUnit.set(unit, ofUnit.set(body, one))
      rank(unit)
    },
    remove(unit: string, body: object): void {
      const ofUnit = byUnit.get(unit)
      if (ofUnit?.delete(body) && ofUnit.size === 0) byUnit.delete(unit)
      rank(unit)
    },
    firstOfMost(): Found | undefined {
      const most = bySize.largest()
      const first = most === undefined ? undefined : byUnit.get(most)?.entries().next().value
      return first && [most!, ...first]
    },
    *all(): Generator<Found> {
      for (const [unit, ofUnit] of byUnit) for (const [body, one] of ofUnit) yield [unit, body, one]
    },
  }
}
