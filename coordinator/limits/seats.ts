import { createTurns } from '../turns.ts'
import type { SlowOrgs } from './slow-orgs.ts'

/** Limits how many large things are in memory as values at once, or how much they take there. */
export interface Seats {
  /** Resolves with what gives the seat back, once one is free; again does nothing. Each org has its turn. */
  take(orgId: string): Promise<() => void>
  /** The same, for so many seats, at most all of the org; undefined when they are not free in time, or once `gone`. */
  takeInTime(orgId: string, ms: number, size?: number, gone?: AbortSignal): Promise<(() => void) | undefined>
  /** The same, at once; undefined when none is free. */
  takeFree(orgId: string): (() => void) | undefined
}

interface Most {
  org: number
  all: number
  /** Of all slow orgs together: all but one, unless given. */
  slow?: number
}

interface Waiting {
  size: number
  begin: () => void
  isOver?: boolean
}

/**
 * `slow`: orgs that never have all seats together, and come after the others, unless none of them has any; left out:
 * none.
 */
export function createSeats(most: Most, slow?: SlowOrgs): Seats {
  const waiting = createTurns<Waiting>()
  const byOrg = new Map<string, number>()
  let taken = 0

  const count = (org: string) => byOrg.get(org) ?? 0
  const isSlow = (org: string) => slow?.isSlow(org) ?? false
  const ofSlow = most.slow ?? Math.max(1, most.all - 1)
  const takenBySlow = () => [...byOrg].reduce((sum, [org, own]) => sum + (isSlow(org) ? own : 0), 0)
  const may = (org: string, { size, isOver }: Pick<Waiting, 'size' | 'isOver'>) =>
    isOver ||
    (count(org) + size <= most.org && taken + size <= most.all && (!isSlow(org) || takenBySlow() + size <= ofSlow))

  /** Those that are not slow come first, but must not keep the slow ones waiting for ever. */
  function takeNext(): Waiting | undefined {
    if (!slow) return waiting.take(may)
    const take = (isOfSlow: boolean) => waiting.take((org, one) => isSlow(org) === isOfSlow && may(org, one))
    const areSlowFirst = most.all > 1 && takenBySlow() === 0
    return areSlowFirst ? (take(true) ?? take(false)) : (take(false) ?? take(true))
  }

  function next(): void {
    for (;;) {
      const first = takeNext()
      if (!first) return
      if (!first.isOver) first.begin()
    }
  }

  function leaveOnce(orgId: string, size: number): () => void {
    let isTaken = true
    const end = slow?.begin(orgId)
    return () => {
      if (!isTaken) return
      isTaken = false
      end?.()
      taken -= size
      if (count(orgId) > size) byOrg.set(orgId, count(orgId) - size)
      else byOrg.delete(orgId)
      next()
    }
  }

  function sit(orgId: string, size: number): () => void {
    taken += size
    byOrg.set(orgId, count(orgId) + size)
    return leaveOnce(orgId, size)
  }

  function wait(orgId: string, size: number, resolve: (leave: () => void) => void): Waiting {
    const one: Waiting = { size, begin: () => resolve(sit(orgId, size)) }
    waiting.add(orgId, one)
    next()
    return one
  }

  return {
    take: (orgId) => new Promise((resolve) => void wait(orgId, 1, resolve)),
    takeInTime: (orgId, ms, size = 1, gone) =>
      new Promise((resolve) => {
        if (gone?.aborted) return resolve(undefined)
        const settle = (leave?: () => void) => {
          clearTimeout(late)
          gone?.removeEventListener('abort', giveUp)
          resolve(leave)
        }
        const giveUp = () => {
          one.isOver = true
          settle()
          // What stood behind it may be smaller.
          next()
        }
        const late = setTimeout(giveUp, ms)
        gone?.addEventListener('abort', giveUp)
        const one = wait(orgId, Math.min(size, most.org), settle)
      }),
    takeFree: (orgId) => (may(orgId, { size: 1 }) ? sit(orgId, 1) : undefined),
  }
}
