/** Knows which orgs had long acts in the last seconds. */
export interface SlowOrgs {
  /** An act of the org begins; call what it returns when it has ended. */
  begin(orgId: string): () => void
  isSlow(orgId: string): boolean
}

/** Free part of each act: what finds its rows by an index takes some ten milliseconds, also on a busy machine. */
const FREE_MS = 100
/** Time beyond the free parts above which an org is slow; after `FADE_MS` 37 % of it are left. */
const MOST_MS = 500
const FADE_MS = 10_000
/** Beyond that many, those are forgotten that have next to nothing left. */
const MANY = 1000
const NOTHING_MS = 1

/** `now`: in milliseconds, of any clock that goes on evenly. */
export function createSlowOrgs(now: () => number = () => performance.now()): SlowOrgs {
  const noted = new Map<string, { ms: number; at: number }>()
  /** When the acts of an org began that are under way. */
  const begun = new Map<string, Set<{ since: number }>>()

  function left(orgId: string): number {
    const known = noted.get(orgId)
    return known ? known.ms * Math.exp((known.at - now()) / FADE_MS) : 0
  }

  /** Nobody waits for their end to know that they are long. */
  function underWay(orgId: string): number {
    let ms = 0
    for (const { since } of begun.get(orgId) ?? []) ms += Math.max(0, now() - since - FREE_MS)
    return ms
  }

  function note(orgId: string, ms: number) {
    noted.set(orgId, { ms: left(orgId) + ms, at: now() })
    if (noted.size <= MANY) return
    for (const id of noted.keys()) if (left(id) < NOTHING_MS) noted.delete(id)
  }

  return {
    begin(orgId) {
      const act = { since: now() }
      const acts = begun.get(orgId) ?? new Set()
      begun.set(orgId, acts.add(act))
      return () => {
        acts.delete(act)
        if (acts.size === 0) begun.delete(orgId)
        const ms = now() - act.since - FREE_MS
        if (ms > 0) note(orgId, ms)
      }
    },
    isSlow: (orgId) => left(orgId) + underWay(orgId) > MOST_MS,
  }
}
