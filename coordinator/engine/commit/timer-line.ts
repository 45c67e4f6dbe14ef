import type { OrgId, RunId } from '@windlass/shared/ids.ts'
import type { Log } from '@windlass/shared/log.ts'
import { pause } from '@windlass/shared/time.ts'
import { createTurns } from '../../turns.ts'
import type { Upcoming } from '../store/timers.ts'

/** A timer whose turn takes so much: entries to close, or bytes to write. */
export interface Weighed {
  timer: Upcoming
  weight: number
}

/**
 * Timers of one kind for which no others wait: one transaction after the other, and in each the orgs have their turns.
 * While an org has some here, the look for what is due leaves out the others of that kind, so that they hide nothing.
 */
export interface TimerLine {
  /** Orgs that have some here. */
  orgs(): OrgId[]
  /** Runs whose rows are locked by what is under way. */
  held(): RunId[]
  /** `act` does those that have their turn. A failure is logged, and followed by a rest; they are found again. */
  add(timers: readonly Weighed[], act: (due: Upcoming[]) => Promise<void>): void
  /** Takes out those of this org that wait. */
  takeOut(orgId: OrgId): Upcoming[]
  /** Resolves when nothing waits or is under way. */
  idle(): Promise<void>
  /** Drops those that wait. Resolves when none is under way. */
  stop(): Promise<void>
}

interface LineNeeds {
  log: Log
  /** Weight of one transaction, which the last of its timers may pass. */
  most: number
  /** Number of timers of one transaction. */
  mostTimers: number
  /** Runs whose rows are locked with those of these runs. */
  lockedWith?: (ids: RunId[]) => Promise<RunId[]>
  /** No timer of an org is here any more: it may have others. */
  onFree: () => void
}

type Item = Weighed & { act: (due: Upcoming[]) => Promise<void> }

const AFTER_FAILURE_MS = 500

export function createTimerLine({ log, most, mostTimers, lockedWith, onFree }: LineNeeds): TimerLine {
  const waiting = createTurns<Item>()
  /** Number of timers that wait or are under way. */
  const here = new Map<OrgId, number>()
  let held: RunId[] = []
  let underWay: Promise<void> | undefined

  function next(): Item[] {
    const items: Item[] = []
    for (let left = most; left > 0; left -= Math.max(items.at(-1)!.weight, most / mostTimers)) {
      const item = waiting.take(() => true)
      if (!item) break
      items.push(item)
    }
    return items
  }

  function leave(items: readonly Item[]): void {
    for (const { timer } of items) {
      const left = here.get(timer.orgId)! - 1
      if (left > 0) here.set(timer.orgId, left)
      else here.delete(timer.orgId)
    }
  }

  async function attempt(items: Item[]): Promise<void> {
    const due = items.map(({ timer }) => timer)
    const ids = due.map(({ runId }) => runId)
    held = ids
    try {
      if (lockedWith) held = [...ids, ...(await lockedWith(ids))]
      await items[0]!.act(due)
    } catch (error) {
      log.warn('timers.failed', { of: 'timers behind others', error })
      await pause(AFTER_FAILURE_MS)
    }
    held = []
    leave(items)
    if (due.some(({ orgId }) => !here.has(orgId))) onFree()
  }

  async function work(): Promise<void> {
    for (let items = next(); items.length > 0; items = next()) await attempt(items)
    underWay = undefined
  }

  return {
    orgs: () => [...here.keys()],
    held: () => held,
    add(timers, act) {
      for (const { timer, weight } of timers) {
        here.set(timer.orgId, (here.get(timer.orgId) ?? 0) + 1)
        waiting.add(timer.orgId, { timer, weight, act })
      }
      if (timers.length > 0) underWay ??= work()
    },
    takeOut(orgId) {
      const items = waiting.takeOut(orgId)
      leave(items)
      return items.map(({ timer }) => timer)
    },
    async idle() {
      await underWay
    },
    async stop() {
      leave(waiting.drain())
      await underWay
    },
  }
}
