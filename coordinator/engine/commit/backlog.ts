/**
 * What agents have told and the database, which was away, has yet to take. Until then nobody knows how their runs are:
 * their heartbeats may be taken sooner than an end that they told before. Coordinators tell each other with their
 * pulses; until those have come, a moment after a loss counts as well.
 */
export interface Backlog {
  /** The work is one of those that are under way, until it settles. */
  track<T>(work: Promise<T>): Promise<T>
  /** The database was lost, under all that is under way and all that comes until it works again. */
  lost(): void
  works(): void
  /** Another coordinator said so long ago, in milliseconds, that it has one. */
  ofOthers(sinceMs: number): void
  /** To be said to others. */
  isOwn(): boolean
  /** Here or, as far as we know, anywhere. */
  isThere(): boolean
}

/** Entries are tried again after 0.5 s at most, and pulses while there is a backlog. */
const BEHIND_MS = 2000
/**
 * From when the database works again: a batch takes milliseconds. What takes longer, as its values are judged slowly,
 * is behind for reasons of its own, and nobody else is to wait for it.
 */
const MOST_MS = 10_000

export function createBacklog(clock = (): number => performance.now()): Backlog {
  let lostAt = -Infinity
  let othersAt = -Infinity
  let isLost = false
  let worksAt = -Infinity
  const underWay = new Set<Promise<unknown>>()
  const late = new Set<Promise<unknown>>()
  const isSince = (at: number) => clock() < at + BEHIND_MS
  const isOwn = () => isSince(lostAt) || (late.size > 0 && (isLost || clock() < worksAt + MOST_MS))
  return {
    track(work) {
      underWay.add(work)
      if (isLost) late.add(work)
      const settled = () => {
        underWay.delete(work)
        late.delete(work)
      }
      work.then(settled, settled)
      return work
    },
    lost() {
      lostAt = clock()
      isLost = true
      for (const work of underWay) late.add(work)
    },
    works() {
      if (isLost) worksAt = clock()
      isLost = false
    },
    ofOthers: (sinceMs) => void (othersAt = Math.max(othersAt, clock() - sinceMs)),
    isOwn,
    isThere: () => isOwn() || isSince(othersAt),
  }
}
