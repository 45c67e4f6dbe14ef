import type { OrgId, RunId } from '@windlass/shared/ids.ts'
import type { Log } from '@windlass/shared/log.ts'
import { pause } from '@windlass/shared/time.ts'
import type { Db } from '../../db/client.ts'
import { createTurns } from '../../turns.ts'
import * as runStore from '../store/runs.ts'

/** Runs that are ended in one transaction, or lost. */
export interface LongEnd {
  orgId: OrgId
  runIds: readonly RunId[]
  /** `ids`: those of the runs for which nothing else was added since. They may be none. */
  act(ids: RunId[]): Promise<void>
}

/**
 * Ends of runs with long journals, one at a time: each takes up to a second, and nobody else is to wait for it. In one
 * coordinator; another one waits for the lock of the run.
 */
export interface LongEnds {
  /** The row of this run is locked by the one under way. */
  holds(id: RunId): boolean
  /** All whose rows are locked by it. */
  held(): RunId[]
  /** Nothing was added for this run since. */
  isNewest(id: RunId, end: LongEnd): boolean
  /** It waits for its turn, or has it. */
  has(id: RunId): boolean
  /** Those that do. */
  ids(): RunId[]
  /** Orgs of which at least so many wait. */
  orgs(least: number): OrgId[]
  /**
   * It has its turn once each of the other orgs has had one. Of what is added for one run the newest counts. A failure
   * is logged, and followed by a rest.
   */
  add(end: LongEnd): void
  /** Drops those that wait, and what is added from then on. Resolves when none is under way. */
  stop(): Promise<void>
}

const AFTER_FAILURE_MS = 500

/** `parentsOf`: runs whose rows are locked with those of these runs, for the calls that end. */
export function openLongEnds({ db, log }: { db: Db; log: Log }): LongEnds {
  return createLongEnds(log, (ids) => runStore.parentsOf(db, ids))
}

export function createLongEnds(log: Log, parentsOf: (ids: RunId[]) => Promise<RunId[]>): LongEnds {
  const waiting = createTurns<LongEnd>()
  const newest = new Map<RunId, LongEnd>()
  let held: RunId[] = []
  let underWay: Promise<void> | undefined
  let isStopped = false

  async function attempt(end: LongEnd): Promise<void> {
    const ids = end.runIds.filter((id) => newest.get(id) === end)
    held = ids
    try {
      if (ids.length > 0) held = [...ids, ...(await parentsOf(ids))]
      await end.act(ids)
    } catch (error) {
      log.warn('timers.failed', { of: 'long ends', error })
      await pause(AFTER_FAILURE_MS)
    }
    held = []
    for (const id of ids) if (newest.get(id) === end) newest.delete(id)
  }

  async function work(): Promise<void> {
    for (let end = waiting.take(() => true); end; end = waiting.take(() => true)) await attempt(end)
    underWay = undefined
  }

  return {
    holds: (id) => held.includes(id),
    held: () => held,
    isNewest: (id, end) => newest.get(id) === end,
    has: (id) => newest.has(id),
    ids: () => [...newest.keys()],
    orgs: (least) => waiting.orgs(least) as OrgId[],
    add(end) {
      if (isStopped) return
      for (const id of end.runIds) newest.set(id, end)
      waiting.add(end.orgId, end)
      underWay ??= work()
    },
    async stop() {
      isStopped = true
      waiting.drain()
      newest.clear()
      await underWay
    },
  }
}
