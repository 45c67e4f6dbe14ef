/** Waiting items by org. Each org has its turn, however much another has brought. */
export interface Turns<T> {
  add(org: string, item: T): void
  /** The next of the first org in turn that may have its next; that org then comes last. */
  take(may: (org: string, next: T) => boolean): T | undefined
  /** Number of waiting items of this org. */
  waiting(org: string): number
  isEmpty(): boolean
  /** Orgs that have at least so many. */
  orgs(least?: number): string[]
  /** Takes out those of this org. */
  takeOut(org: string): T[]
  /** Takes out everything. */
  drain(): T[]
}

export function createTurns<T>(): Turns<T> {
  // In the order of their turns.
  const orgs = new Map<string, T[]>()

  return {
    add(org, item) {
      const list = orgs.get(org)
      if (list) list.push(item)
      else orgs.set(org, [item])
    },
    take(may) {
      for (const [org, list] of orgs) {
        if (!may(org, list[0]!)) continue
        const item = list.shift()
        orgs.delete(org)
        if (list.length > 0) orgs.set(org, list)
        return item
      }
      return undefined
    },
    waiting: (org) => orgs.get(org)?.length ?? 0,
    isEmpty: () => orgs.size === 0,
    orgs: (least = 1) => [...orgs].flatMap(([org, list]) => (list.length >= least ? [org] : [])),
    takeOut(org) {
      const list = orgs.get(org) ?? []
      orgs.delete(org)
      return list
    },
    drain() {
      const all = [...orgs.values()].flat()
      orgs.clear()
      return all
    },
  }
}
