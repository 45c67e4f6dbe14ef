/**
 * What agents have told and the database, which was away, has yet to take. Until then nobody knows how their runs are:
 * their heartbeats may be taken sooner than an end that they told before.
 */
export interface Backlog {
  /** Is one of those that are under way, until it settles. */
  track<T>(work: Promise<T>): Promise<T>
  /** The database was lost under all that is under way. */
  lost(): void
  isThere(): boolean
}

export function createBacklog(): Backlog {
  const underWay = new Set<Promise<unknown>>()
  const late = new Set<Promise<unknown>>()
  return {
    track(work) {
      underWay.add(work)
      const settled = () => {
        underWay.delete(work)
        late.delete(work)
      }
      work.then(settled, settled)
      return work
    },
    lost() {
      for (const work of underWay) late.add(work)
    },
    isThere: () => late.size > 0,
  }
}
