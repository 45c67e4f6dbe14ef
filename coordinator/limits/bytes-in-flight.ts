import { Fault } from '@windlass/shared/errors.ts'

/** Limits the bytes of large things in memory: those of one org, and those of all orgs together. */
export interface BytesInFlight {
  hold(orgId: string): Holding
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
  /** Gives everything back; again does nothing. */
  release(this: void): void
}

/** Bytes of each request that are not counted: small requests never meet the limit. */
const FREE_BYTES = 64 * 1024
const RETRY_AFTER_MS = 5_000

/** `what` names it in refusals, `scope` those whom the first limit is for. */
export function createBytesInFlight(limits: Bytes, what = 'Deploys', scope: 'org' | 'address' = 'org'): BytesInFlight {
  const byOrg = new Map<string, number>()
  let all = 0

  function add(orgId: string, more: Bytes) {
    const held = (byOrg.get(orgId) ?? 0) + more.org
    if (held > 0) byOrg.set(orgId, held)
    else byOrg.delete(orgId)
    all += more.all
  }

  return {
    hold(orgId) {
      let seen = { announced: 0, taken: 0 }
      let counted: Bytes = { org: 0, all: 0 }

      function see({ announced, taken }: typeof seen) {
        const wanted = { org: beyondFree(Math.max(announced, taken)), all: beyondFree(taken) }
        const more = { org: wanted.org - counted.org, all: wanted.all - counted.all }
        refuseOver({ ...limits, what, scope }, more, { org: (byOrg.get(orgId) ?? 0) + more.org, all: all + more.all })
        seen = { announced, taken }
        counted = wanted
        add(orgId, more)
      }

      return {
        announce: (bytes) => see({ ...seen, announced: seen.announced + bytes }),
        take: (bytes) => see({ ...seen, taken: seen.taken + bytes }),
        release() {
          add(orgId, { org: -counted.org, all: -counted.all })
          seen = { announced: 0, taken: 0 }
          counted = { org: 0, all: 0 }
        },
      }
    },
  }
}

/** Bytes of one org, and of all orgs together. */
type Bytes = { org: number; all: number }

const beyondFree = (bytes: number) => Math.max(0, bytes - FREE_BYTES)

/** Throws when a sum is over its limit. A request that adds nothing to a sum is not refused for it. */
function refuseOver(
  { what, scope, org, all }: Bytes & { what: string; scope: string },
  more: Bytes,
  bytes: Bytes,
): void {
  if (more.org > 0 && bytes.org > org) {
    const detail = { scope, limitBytes: org, bytes: bytes.org, retryAfterMs: RETRY_AFTER_MS }
    const message = `${what} of this ${scope} may have ${org} bytes under way together; let one of them end first.`
    throw new Fault('RATE_LIMITED', detail, message)
  }
  if (more.all > 0 && bytes.all > all) {
    const detail = { limitBytes: all, bytes: bytes.all }
    throw new Fault('UNAVAILABLE', detail, `${what} of others are under way; try again in a few seconds.`)
  }
}
