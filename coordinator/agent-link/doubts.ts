import type { RunnerIdentity } from '../actor.ts'

/**
 * Doubts about machines that were started anew, and whose predecessor was heard lately. It may be a clone, whose
 * original goes on; or the host was cut off and came back soon, and what it had said before was perhaps read late, as
 * while the coordinator stood still.
 */
export interface Doubts {
  /** True when the predecessor was heard again, long after this boot first asked: it goes on. */
  isClone(runner: Pick<RunnerIdentity, 'id' | 'orgId'>, boot: string, heardAgoMs: number): boolean
}

/** What lay in buffers when the boot first asked is read by then. */
const LATE_MS = 15_000
/** After it a boot is forgotten, and judged anew when it asks again. */
const FORGET_MS = 600_000
/**
 * Boots that are remembered, of all orgs: 8 MB, and 12 at most. In ten minutes the agents of one org may say 200,000.
 * Beyond them the org with most loses its oldest: a clone of it is put off for longer before it is refused.
 */
const MOST = 20_000

interface DoubtsOptions {
  now?: () => number
  most?: number
}

interface Asked {
  orgId: string
  at: number
}

export function createDoubts({ now = () => performance.now(), most = MOST }: DoubtsOptions = {}): Doubts {
  /** When each boot of a runner asked first. Those that did so before others stand before them. */
  const asked = new Map<string, Asked>()
  /** The same boots by their org, in the same order. */
  const orgs = new Map<string, Set<string>>()

  function add(key: string, orgId: string): Asked {
    const first = { orgId, at: now() }
    asked.set(key, first)
    orgs.set(orgId, (orgs.get(orgId) ?? new Set()).add(key))
    return first
  }

  function remove(key: string): void {
    const { orgId = '' } = asked.get(key) ?? {}
    asked.delete(key)
    const boots = orgs.get(orgId)
    boots?.delete(key)
    if (boots?.size === 0) orgs.delete(orgId)
  }

  function forget(): void {
    for (const [key, { at }] of asked) {
      if (at > now() - FORGET_MS) return
      remove(key)
    }
  }

  function removeOldestOfMost(): void {
    let largest: ReadonlySet<string> = new Set()
    for (const boots of orgs.values()) if (boots.size > largest.size) largest = boots
    const [oldest] = largest
    if (oldest !== undefined) remove(oldest)
  }

  return {
    isClone({ id, orgId }, boot, heardAgoMs) {
      forget()
      const key = `${id} ${boot}`
      const first = asked.get(key) ?? add(key, orgId)
      if (asked.size > most) removeOldestOfMost()
      // By a clock of the database that was ahead, it was heard at a time which is still to come.
      return heardAgoMs >= 0 && now() - heardAgoMs > first.at + LATE_MS
    },
  }
}
