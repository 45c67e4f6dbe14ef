import { Fault } from '@windlass/shared/errors.ts'
import { createBySize } from './by-size.ts'

/** Limits the bytes of large things in memory: those of one org, and those of all orgs together. */
export interface BytesInFlight {
  /**
   * With `giveWay` it may lose its place until it is `whole`: when all together have too much, the slowest of those
   * that have been coming for some seconds is told, and has to release; if there is none, the one that has been coming
   * for longest of the org with the most, to within a ninth. It is counted from its first byte: nobody knows yet whose
   * it is.
   */
  hold(orgId: string, giveWay?: () => void): Holding
}

/** What one request has in memory. */
export interface Holding {
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
  /** All of it has come: it gives way to nobody any more. */
  whole(this: void): void
  /** Gives everything back; again does nothing. */
  release(this: void): void
}

/** Bytes of each request that are not counted: small requests never meet the limit. */
const FREE_BYTES = 64 * 1024
/** A body that is younger has no rate yet. */
const YOUNG_MS = 5_000
/** Bodies that are looked at for the slowest: tens of thousands may come at once. */
const MOST_LOOKS = 1000
const RETRY_AFTER_MS = 5_000

interface Options {
  /** Names it in refusals. */
  what?: string
  /** The unit of the first limit: the bytes of each are counted together. */
  scope?: 'org' | 'address'
  now?: () => number
}

export function createBytesInFlight(limits: Bytes, options: Options = {}): BytesInFlight {
  const { what = 'Deploys', scope = 'org', now = () => performance.now() } = options
  const byOrg = new Map<string, number>()
  const coming = createComing((orgId) => byOrg.get(orgId) ?? 0, now)
  let all = 0

  function add(orgId: string, more: Bytes) {
    const held = (byOrg.get(orgId) ?? 0) + more.org
    if (held > 0) byOrg.set(orgId, held)
    else byOrg.delete(orgId)
    all += more.all
    coming.rank(orgId)
  }

  return {
    hold(orgId, giveWay) {
      let seen = { announced: 0, taken: 0 }
      let counted: Bytes = { org: 0, all: 0 }
      const since = now()
      const beyondFree = (bytes: number) => Math.max(0, bytes - (giveWay ? 0 : FREE_BYTES))

      function see({ announced, taken }: typeof seen) {
        const wanted = { org: beyondFree(Math.max(announced, taken)), all: beyondFree(taken) }
        const more = { org: wanted.org - counted.org, all: wanted.all - counted.all }
        refuseOverOfOne({ limit: limits.org, what, scope }, more.org, (byOrg.get(orgId) ?? 0) + more.org)
        if (more.all > 0) coming.makeRoom(holding, () => all + more.all <= limits.all)
        refuseOverOfAll({ limit: limits.all, what }, more.all, all + more.all)
        seen = { announced, taken }
        counted = wanted
        add(orgId, more)
        if (giveWay && more.all > 0) coming.add(orgId, holding, { giveWay, since, bytes: taken })
      }

      const holding: Holding = {
        announce: (bytes) => see({ ...seen, announced: seen.announced + bytes }),
        take: (bytes) => see({ ...seen, taken: seen.taken + bytes }),
        whole: () => coming.remove(orgId, holding),
        release() {
          coming.remove(orgId, holding)
          add(orgId, { org: -counted.org, all: -counted.all })
          seen = { announced: 0, taken: 0 }
          counted = { org: 0, all: 0 }
        },
      }
      return holding
    },
  }
}

interface Coming {
  giveWay: () => void
  since: number
  bytes: number
}

/** What is still coming and may give way, by org, the longest first. */
function createComing(heldBy: (orgId: string) => number, now: () => number) {
  const byOrg = new Map<string, Map<Holding, Coming>>()
  const bySize = createBySize()

  function remove(orgId: string, holding: Holding): void {
    const ofOrg = byOrg.get(orgId)
    if (ofOrg?.delete(holding) && ofOrg.size === 0) byOrg.delete(orgId)
    rank(orgId)
  }

  function rank(orgId: string): void {
    if (byOrg.has(orgId)) bySize.set(orgId, heldBy(orgId))
    else bySize.remove(orgId)
  }

  function firstOfMost(): Found | undefined {
    const most = bySize.largest()
    const first = most === undefined ? undefined : byOrg.get(most)?.entries().next().value
    return first && [most!, ...first]
  }

  /** The body with the lowest rate. One that stalls holds its room for as long as its sender likes. */
  function slowest(): Found | undefined {
    let found: Found | undefined
    let least = Infinity
    let looks = 0
    for (const [orgId, ofOrg] of byOrg)
      for (const [holding, one] of ofOrg) {
        if (looks++ >= MOST_LOOKS) return found
        const ms = now() - one.since
        if (ms < YOUNG_MS || one.bytes / ms >= least) continue
        least = one.bytes / ms
        found = [orgId, holding, one]
      }
    return found
  }

  return {
    remove,
    /** What the org holds has changed. */
    rank,
    add(orgId: string, holding: Holding, one: Coming): void {
      const ofOrg = byOrg.get(orgId) ?? new Map<Holding, Coming>()
      byOrg.set(orgId, ofOrg.set(holding, one))
      rank(orgId)
    },
    /** Until there is room, or nobody is left who gives way to the one that asks. */
    makeRoom(asking: Holding, isThere: () => boolean): void {
      let maySomeBeSlow = true
      while (!isThere()) {
        const slow: Found | undefined = maySomeBeSlow ? slowest() : undefined
        maySomeBeSlow = slow !== undefined
        const found = slow ?? firstOfMost()
        if (!found || found[1] === asking) return
        const [orgId, holding, { giveWay }] = found
        remove(orgId, holding)
        giveWay()
      }
    },
  }
}

type Found = [orgId: string, holding: Holding, one: Coming]

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
