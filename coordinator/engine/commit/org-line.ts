import type { OrgId, RunId } from '@windlass/shared/ids.ts'
import type { Log } from '@windlass/shared/log.ts'
import { pause } from '@windlass/shared/time.ts'
import { createSeats, type Seats } from '../../limits/seats.ts'
import { createSlowOrgs } from '../../limits/slow-orgs.ts'
import { createTurns, type Turns } from '../../turns.ts'

/** Something of an org that is due, and what its turn takes: entries to close, or bytes to write. */
export interface Weighed<T> {
  item: T
  weight: number
  /** It may wait for locks of limits, which its org may hold for long. */
  isLimited: boolean
}

/**
 * What is due and what no others wait for: one transaction after the other, and in each the orgs have their turns. What
 * is limited has transactions of its org alone, beside those: orgs do not wait for each other's locks. While an org has
 * something here, the look for what is due leaves it out, so that it hides nothing.
 */
export interface OrgLine<T> {
  /** What of each org waits here, or is under way. */
  here(): ReadonlyMap<OrgId, readonly T[]>
  /** Runs whose rows are locked by what is under way. */
  held(): RunId[]
  /** `act` does those that have their turn. A failure is logged, and followed by a rest; they are found again. */
  add(some: readonly Weighed<T>[], act: Act<T>): void
  /** Takes out those of this org that wait with such as are limited, or with the others. */
  takeOut(orgId: OrgId, isLimited: boolean): T[]
  /** Resolves when nothing waits or is under way. */
  idle(): Promise<void>
  /** Drops those that wait. Resolves when none is under way. */
  stop(): Promise<void>
}

/** All of them are limited, or none. */
export type Act<T> = (some: T[], isLimited: boolean) => Promise<void>

interface LineNeeds {
  log: Log
  /** As the log calls what is done here. */
  of: string
  /** Weight of one transaction, which the last of its items may pass. */
  most: number
  /** Number of items of one transaction. */
  mostItems: number
  /** Of those that are limited. Several lines may share them. */
  seats: Seats
  /** Runs whose rows are locked with those of these runs. */
  lockedWith?: (ids: RunId[]) => Promise<RunId[]>
  /** Nothing of an org is here any more: it may have others. */
  onFree: () => void
}

type Item<T> = Weighed<T> & { act: Act<T> }

const AFTER_FAILURE_MS = 500

/**
 * Of the connections, most of which others need: each may stand idle while its org waits for its own locks. Timers have
 * so many, and schedules.
 */
export const LIMITED_AT_ONCE = 3

/** Orgs that have taken long never have the last seat. */
export const openLimitedSeats = (): Seats => createSeats({ org: 1, all: LIMITED_AT_ONCE }, createSlowOrgs())

/** What one transaction does, of those orgs that may. */
function pieceOf<T>(turns: Turns<Item<T>>, { most, mostItems }: LineNeeds, may: (org: string) => boolean): Item<T>[] {
  const items: Item<T>[] = []
  for (let left = most; left > 0; left -= Math.max(items.at(-1)!.weight, most / mostItems)) {
    const item = turns.take(may)
    if (!item) break
    items.push(item)
  }
  return items
}

export function createOrgLine<T extends { orgId: OrgId; runId?: RunId }>(needs: LineNeeds): OrgLine<T> {
  const { log, of, seats, lockedWith, onFree } = needs
  const waiting = { free: createTurns<Item<T>>(), limited: createTurns<Item<T>>() }
  const here = new Map<OrgId, Set<T>>()
  /** Runs of the transactions under way. */
  const locked = new Set<{ ids: RunId[] }>()
  /** Of all that is not limited, and of each org what is. */
  const workers = new Map<OrgId | 'free', Promise<void>>()

  function leave(items: readonly Item<T>[]): void {
    for (const { item } of items) {
      const own = here.get(item.orgId)
      own?.delete(item)
      if (own?.size === 0) here.delete(item.orgId)
    }
  }

  async function attempt(items: Item<T>[]): Promise<void> {
    const some = items.map(({ item }) => item)
    const ids = some.flatMap(({ runId }) => runId ?? [])
    const locks = { ids }
    locked.add(locks)
    try {
      if (lockedWith) locks.ids = [...ids, ...(await lockedWith(ids))]
      await items[0]!.act(some, items[0]!.isLimited)
    } catch (error) {
      log.warn('timers.failed', { of, error })
      await pause(AFTER_FAILURE_MS)
    }
    locked.delete(locks)
    leave(items)
    if (some.some(({ orgId }) => !here.has(orgId))) onFree()
  }

  async function workFree(): Promise<void> {
    const take = () => pieceOf(waiting.free, needs, () => true)
    for (let items = take(); items.length > 0; items = take()) await attempt(items)
    workers.delete('free')
  }

  async function workLimited(orgId: OrgId): Promise<void> {
    while (waiting.limited.waiting(orgId) > 0) {
      const leaveSeat = await seats.take(orgId)
      const items = pieceOf(waiting.limited, needs, (org) => org === orgId)
      if (items.length > 0) await attempt(items)
      leaveSeat()
    }
    workers.delete(orgId)
  }

  const start = (orgId: OrgId | 'free') =>
    workers.set(orgId, workers.get(orgId) ?? (orgId === 'free' ? workFree() : workLimited(orgId)))

  const idle = async () => {
    while (workers.size > 0) await Promise.all(workers.values())
  }

  return {
    here: () => new Map([...here].map(([orgId, own]) => [orgId, [...own]])),
    held: () => [...locked].flatMap(({ ids }) => ids),
    add(some, act) {
      for (const one of some) {
        const { orgId } = one.item
        here.set(orgId, (here.get(orgId) ?? new Set()).add(one.item))
        waiting[one.isLimited ? 'limited' : 'free'].add(orgId, { ...one, act })
      }
      for (const one of some) start(one.isLimited ? one.item.orgId : 'free')
    },
    takeOut(orgId, isLimited) {
      const items = waiting[isLimited ? 'limited' : 'free'].takeOut(orgId)
      leave(items)
      return items.map(({ item }) => item)
    },
    idle,
    async stop() {
      for (const turns of Object.values(waiting)) leave(turns.drain())
      await idle()
    },
  }
}
