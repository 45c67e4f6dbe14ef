import { Fault } from '@windlass/shared/errors.ts'
import type { Path } from './body-tree.ts'
import { createGivingWay } from './giving-way.ts'
import { pathOf } from './network-turns.ts'

/** Limits the bytes of large things in memory: those of one org, and those of all orgs together. */
export interface BytesInFlight {
  /**
   * With `giveWay` it may lose its place until it is `whole`: when all together have too much, the slowest of those
   * that have been coming for some seconds is told, and has to release; if there is none, the one that has been coming
   * for longest of the org with the most, or of the network, by the widest first, each to within a ninth. Nobody gives
   * way to one that would have more itself. It is counted from its first byte: nobody knows yet whose it is.
   */
  hold(orgId: string, giveWay?: () => void): Holding
}

/** What one request has in memory. */
export interface Holding extends Known {
  /**
   * Counts what is to come for the org only: it is not in memory yet, and may never come. Throws RATE_LIMITED when the
   * org has too much under way.
   */
  announce(this: void, bytes: number): void
  /**
   * Counts what is in memory, for the org as far as it was not announced. Throws RATE_LIMITED when the org has too much
   * under way, UNAVAILABLE when all together have.
   */
  take(this: void, bytes: number): void
  /** All of it has come: it gives way to nobody any more, but while it waits. */
  whole(this: void): void
  /** Gives everything back; again does nothing. */
  release(this: void): void
}

/** What is whole, once it is known whose it is. */
export interface Known {
  /**
   * It is of this org, for which it counts from now on. Throws RATE_LIMITED when that has too much under way; then it
   * counts where it did.
   */
  countFor(this: void, orgId: string): void
  /**
   * It only waits for others of its org, and may lose its place: when all together have too much, the one that has
   * begun to wait last of the org with the most is told, to within a ninth. Its bytes are given back before `giveUp` is
   * called, which has to let go of them. Returns what ends the wait.
   */
  wait(this: void, giveUp: () => void): () => void
}

/** Bytes of each request that are not counted: small requests never meet the limit. */
const FREE_BYTES = 64 * 1024
const RETRY_AFTER_MS = 5_000

interface Options {
  /** Names it in refusals. */
  what?: string
  /** The unit of the first limit: the bytes of each are counted together. */
  scope?: Scope
  /**
   * What bodies of at most 64 KiB may have beyond both limits, so that large ones leave room for them. It is for those
   * that are counted from their first byte.
   */
  small?: Bytes
  now?: () => number
}

type Scope = 'org' | 'address'

export function createBytesInFlight(limits: Bytes, options: Options = {}): BytesInFlight {
  const { what = 'Deploys', scope = 'org', small = { org: 0, all: 0 }, now = () => performance.now() } = options
  /** Of orgs and addresses, and of the networks in which these are. */
  const byName = new Map<string, number>()
  const heldBy = (name: string) => byName.get(name) ?? 0
  const giving = createGivingWay(heldBy, now)
  let all = 0

  function add({ path }: Unit, more: Bytes) {
    for (const name of new Set(path)) {
      const held = heldBy(name) + more.org
      if (held > 0) byName.set(name, held)
      else byName.delete(name)
    }
    all += more.all
    giving.rank(path)
  }

  return {
    hold(orgId, giveWay) {
      let unit = unitOf(orgId, scope)
      let seen = { announced: 0, taken: 0 }
      let counted: Bytes = { org: 0, all: 0 }
      const since = now()
      const beyondFree = (bytes: number) => Math.max(0, bytes - (giveWay ? 0 : FREE_BYTES))
      const isSmall = ({ announced, taken }: typeof seen) => Math.max(announced, taken) <= FREE_BYTES
      const most = (next: typeof seen) =>
        isSmall(next) ? { org: limits.org + small.org, all: limits.all + small.all } : limits

      function see(next: typeof seen) {
        const { announced, taken } = next
        const wanted = { org: beyondFree(Math.max(announced, taken)), all: beyondFree(taken) }
        const more = { org: wanted.org - counted.org, all: wanted.all - counted.all }
        const limit = most(next)
        refuseOverOfOne({ limit: limit.org, what, scope: unit.scope }, more.org, heldBy(unit.id) + more.org)
        const asking = { path: unit.path, body: holding, more: more.org }
        if (more.all > 0) giving.makeRoom(asking, () => all + more.all <= limit.all)
        refuseOverOfAll({ limit: limit.all, what }, more.all, all + more.all)
        seen = next
        counted = wanted
        add(unit, more)
        if (giveWay && more.all > 0) giving.add(unit.path, holding, { giveWay, since, bytes: taken })
      }

      const holding: Holding = {
        announce: (bytes) => see({ ...seen, announced: seen.announced + bytes }),
        take: (bytes) => see({ ...seen, taken: seen.taken + bytes }),
        whole: () => giving.remove(unit.path, holding),
        countFor(id) {
          const { org } = counted
          refuseOverOfOne({ limit: most(seen).org, what, scope: 'org' }, org, heldBy(id) + org)
          holding.whole()
          add(unit, { org: -org, all: 0 })
          unit = unitOf(id, 'org')
          add(unit, { org, all: 0 })
        },
        wait(giveUp) {
          // It would give no room.
          if (counted.all === 0) return holding.whole
          const one = { giveWay: () => (holding.release(), giveUp()), bytes: seen.taken }
          giving.add(unit.path, holding, one)
          return holding.whole
        },
        release() {
          holding.whole()
          add(unit, { org: -counted.org, all: -counted.all })
          seen = { announced: 0, taken: 0 }
          counted = { org: 0, all: 0 }
        },
      }
      return holding
    },
  }
}

/** What bytes are counted by for the first limit: an address or an org. */
interface Unit {
  id: string
  scope: Scope
  path: Path
}

const unitOf = (id: string, scope: Scope): Unit => ({ id, scope, path: pathOf(id) })

/** Bytes of one org, and of all orgs together. */
type Bytes = { org: number; all: number }

interface Limit {
  limit: number
  what: string
}

/** A request that adds nothing to a sum is not refused for it; the same below. */
function refuseOverOfOne({ limit, what, scope }: Limit & { scope: string }, more: number, bytes: number): void {
  if (more <= 0 || bytes <= limit) return
  const detail = { scope, limitBytes: limit, bytes, retryAfterMs: RETRY_AFTER_MS }
  const message = `${what} of this ${scope} may have ${limit} bytes under way together; let one of them end first.`
  throw new Fault('RATE_LIMITED', detail, message)
}

function refuseOverOfAll({ limit, what }: Limit, more: number, bytes: number): void {
  if (more <= 0 || bytes <= limit) return
  const message = `${what} of others are under way; try again in a few seconds.`
  throw new Fault('UNAVAILABLE', { limitBytes: limit, bytes }, message)
}
