import { BodyTree, type Found, type Giving, type Path } from './body-tree.ts'

/** Those that may give way: bodies that are still coming in, and those that have come and only wait. */
export interface GivingWay {
  add(path: Path, body: object, one: Giving): void
  remove(path: Path, body: object): void
  /** What is held there has changed. */
  rank(path: Path): void
  /** Until there is room, or nobody is left who gives way to the one that asks. */
  makeRoom(asking: Asking, isThere: () => boolean): void
}

interface Asking {
  path: Path
  body: object
  /** What it asks for. */
  more: number
}

/** A body that is younger has no rate yet. */
const YOUNG_MS = 5_000
/** Bodies that are looked at for the slowest: tens of thousands may come at once. */
const MOST_LOOKS = 1000

/** `heldBy`: the bytes of an org, an address or a network. */
export function createGivingWay(heldBy: (name: string) => number, now: () => number): GivingWay {
  const coming = new BodyTree(heldBy)
  const waiting = new BodyTree(heldBy)
  const treeOf = ({ since }: Giving) => (since === undefined ? waiting : coming)

  /** The body with the lowest rate. One that stalls holds its room for as long as its sender likes. */
  function slowest(): Found | undefined {
    let found: Found | undefined
    let least = Infinity
    let looks = 0
    for (const each of coming.all()) {
      if (looks++ >= MOST_LOOKS) return found
      const { since, bytes } = each.one
      const ms = now() - since!
      if (ms < YOUNG_MS || bytes / ms >= least) continue
      least = bytes / ms
      found = each
    }
    return found
  }

  /**
   * A network is compared with an org by all that comes from it. What waits has cost its sender all of its way: where
   * both have as much, what is coming gives way. Of an org that waits it is the last one: the first has its turn next.
   */
  function ofMost(): Found | undefined {
    const [comes, waits] = [coming.firstOfMost(), waiting.lastOfMost()]
    if (!comes || !waits) return comes ?? waits
    return heldBy(waits.path[0]!) > heldBy(comes.path[0]!) ? waits : comes
  }

  /** By the widest network in which the two differ. One of the same address or org does not give way. */
  function wouldHaveMore({ path, more }: Asking, than: Path): boolean {
    const at = path.findIndex((name, i) => name !== than[i])
    return at < 0 || heldBy(path[at]!) + more > heldBy(than[at]!)
  }

  return {
    add: (path, body, one) => treeOf(one).add(path, body, one),
    remove(path, body) {
      coming.remove(path, body)
      waiting.remove(path, body)
    },
    rank(path) {
      coming.rank(path)
      waiting.rank(path)
    },
    makeRoom(asking, isThere) {
      let maySomeBeSlow = true
      while (!isThere()) {
        const slow: Found | undefined = maySomeBeSlow ? slowest() : undefined
        maySomeBeSlow = slow !== undefined
        const found: Found | undefined = slow ?? ofMost()
        if (!found || found.body === asking.body) return
        if (!slow && wouldHaveMore(asking, found.path)) return
        const { path, body, one } = found
        treeOf(one).remove(path, body)
        one.giveWay()
      }
    },
  }
}
