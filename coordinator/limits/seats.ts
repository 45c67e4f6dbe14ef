import { createTurns } from '../turns.ts'
import type { SlowOrgs } from './slow-orgs.ts'

/** Limits how many large things are in memory as values at once, which take twenty times the bytes of their text. */
export interface Seats {
  /** Resolves with what gives the seat back, once one is free; again does nothing. Each org has its turn. */
  take(orgId: string): Promise<() => void>
  /** The same, at once; undefined when none is free. */
  takeFree(orgId: string): (() => void) | undefined
}

/** `slow`: orgs that never get the last seat, and come after the others; left out: none. */
export function createSeats(most: { org: number; all: number }, slow?: SlowOrgs): Seats {
  const waiting = createTurns<() => void>()
  const byOrg = new Map<string, number>()
  let taken = 0

  const count = (org: string) => byOrg.get(org) ?? 0
  const isSlow = (org: string) => slow?.isSlow(org) ?? false
  const ofSlow = Math.max(1, most.all - 1)
  const may = (org: string) => count(org) < most.org && taken < (isSlow(org) ? ofSlow : most.all)

  function next(): void {
    while (taken < most.all) {
      const begin = waiting.take((org) => !isSlow(org) && may(org)) ?? (slow && waiting.take(may))
      if (!begin) return
      begin()
    }
  }

  function leaveOnce(orgId: string): () => void {
    let isTaken = true
    const end = slow?.begin(orgId)
    return () => {
      if (!isTaken) return
      isTaken = false
      end?.()
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
    takeFree: (orgId) => (may(orgId) ? sit(orgId) : undefined),
  }
}
