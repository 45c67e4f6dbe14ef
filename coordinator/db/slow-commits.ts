import { LRUCache } from 'lru-cache'

/**
 * Knows whose commits take long: they wait for locks that their org holds, or write very much. Those of such an org are
 * kept apart from those of others, which would wait along. A commit may be of many orgs, so it has to find out which of
 * them it was; `limits/slow-orgs.ts` is for acts of one org each.
 */
export interface SlowCommits {
  /** A commit of these orgs begins; call what it returns at its end. One whose database is away is not counted. */
  begin(orgIds: ReadonlySet<string>): (how: 'committed' | 'refused' | 'away') => void
  /** Whether the org is to commit alone: it is slow, or one of several whose common commit took long. */
  isApart(orgId: string): boolean
  /**
   * Whether a commit of the org alone has taken long in the last minute, or was refused, and others have committed
   * meanwhile. What is refused is tried again and again, in halves.
   */
  isSlow(orgId: string): boolean
}

/** A usual commit takes 5 ms, and 50 on a busy machine. */
export const LONG_MS = 300
/** Where all are slow it is the machine: only what takes so many times as long as usual is long. */
const TIMES_USUAL = 4
/** Weight of the last commit in what is usual. */
const LAST = 0.2
/** An org that goes on like this makes others wait for one commit in a minute. */
const SLOW_MS = 60_000
/** Number of orgs that are remembered. */
const MOST = 10_000

/** `now`: in milliseconds, of any clock that goes on evenly. */
export function createSlowCommits(now: () => number = () => performance.now()): SlowCommits {
  /** Those that are to commit alone, and until when they are slow: until a short commit after that. */
  const apart = new LRUCache<string, { slowUntil: number }>({ max: MOST })
  const underWay = new Set<{ orgIds: ReadonlySet<string>; since: number }>()
  let usualMs = 0

  const isLong = (ms: number) => ms > Math.max(LONG_MS, TIMES_USUAL * usualMs)
  /** The last two orgs that committed: whether there are others than this one. */
  let latest = { orgId: '', at: -Infinity }
  let before = latest
  const hasOthers = (orgId: string) => now() - (latest.orgId === orgId ? before : latest).at < SLOW_MS
  const wasSlow = (orgId: string) => (apart.get(orgId)?.slowUntil ?? -Infinity) > now()

  const noteSlow = (orgId: string) => apart.set(orgId, { slowUntil: now() + SLOW_MS })

  function noteAlone(orgId: string, ms: number) {
    if (isLong(ms)) noteSlow(orgId)
    else if (!wasSlow(orgId)) apart.delete(orgId)
  }

  function note(orgIds: ReadonlySet<string>, ms: number) {
    const [first = ''] = orgIds
    for (const orgId of orgIds) {
      if (latest.orgId !== orgId) before = latest
      latest = { orgId, at: now() }
    }
    const isOfSlow = orgIds.size === 1 && wasSlow(first)
    if (orgIds.size === 1) noteAlone(first, ms)
    else if (isLong(ms)) for (const orgId of orgIds) apart.set(orgId, apart.get(orgId) ?? { slowUntil: -Infinity })
    if (!isOfSlow) usualMs += LAST * (ms - usualMs)
  }

  /** Nobody waits for its end to know that it is long. */
  function isInLong(orgId: string): boolean {
    for (const { orgIds, since } of underWay) if (orgIds.has(orgId) && isLong(now() - since)) return true
    return false
  }

  return {
    begin(orgIds) {
      const commit = { orgIds, since: now() }
      underWay.add(commit)
      return (how) => {
        underWay.delete(commit)
        if (how === 'refused' && orgIds.size === 1) for (const orgId of orgIds) noteSlow(orgId)
        if (how !== 'away') note(orgIds, now() - commit.since)
      }
    },
    isApart: (orgId) => apart.has(orgId) || isInLong(orgId),
    isSlow: (orgId) => wasSlow(orgId) && hasOthers(orgId),
  }
}
