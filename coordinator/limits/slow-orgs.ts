/** Tells orgs of late whose acts took long from those whose acts were short, however many they are. */
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

  function left(orgId: string): number {
    const known = noted.get(orgId)
    return known ? known.ms * Math.exp((known.at - now()) / FADE_MS) : 0
  }

  function note(orgId: string, ms: number) {
    noted.set(orgId, { ms: left(orgId) + ms, at: now() })
    if (noted.size <= MANY) return
    for (const id of noted.keys()) if (left(id) < NOTHING_MS) noted.delete(id)
  }

  return {
    begin(orgId) {
      const since = now()
      return () => {
        const ms = now() - since - FREE_MS
        if (ms > 0) note(orgId, ms)
      }
    },
    isSlow: (orgId) => left(orgId) > MOST_MS,
  }
}
