import { createTurns } from '../turns.ts'

/** Limits how many large things are in memory as values at once, which take twenty times the bytes of their text. */
export interface Seats {
  /** Resolves with what gives the seat back, once one is free; again does nothing. Each org has its turn. */
  take(orgId: string): Promise<() => void>
  /** The same, at once; undefined when none is free. */
  takeFree(orgId: string): (() => void) | undefined
}

export function createSeats(most: { org: number; all: number }): Seats {
  const waiting = createTurns<() => void>()
  const byOrg = new Map<string, number>()
  let taken = 0

  const count = (org: string) => byOrg.get(org) ?? 0

  function next(): void {
    while (taken < most.all) {
      const begin = waiting.take((org) => count(org) < most.org)
      if (!begin) return
      begin()
    }
  }

  function leaveOnce(orgId: string): () => void {
    let isTaken = true
    return () => {
      if (!isTaken) return
      isTaken = false
      taken--
      if (count(orgId) > 1) byOrg.set(orgId, count(orgId) - 1)
      else byOrg.delete(orgId)
      next()
    }
  }

  function sit(orgId: string): () => void {
    taken++
    byOrg.set(orgId, count(orgId) + 1)
    return leaveOnce(orgId)
  }

  return {
    take(orgId) {
      return new Promise((resolve) => {
        waiting.add(orgId, () => resolve(sit(orgId)))
        next()
      })
    },
    takeFree: (orgId) => (taken < most.all && count(orgId) < most.org ? sit(orgId) : undefined),
  }
}
