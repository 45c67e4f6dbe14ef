import type { RunnerId } from '@windlass/shared/ids.ts'
import type { Db, Tx } from '../../db/client.ts'
import type { Moving } from '../rules/run.ts'
import { announce, type AnnounceDeps } from './announce.ts'
import { lockRuns, lockRunsOf } from './lock.ts'
import { saveMoves } from './save.ts'

export type MoveDeps = { db: Db } & AnnounceDeps

/** The runs to be locked. */
export interface Locking {
  ids: readonly string[]
  /** Those among them that may end now: their parents are locked with them. All, where it is left out. */
  ending?: readonly string[]
  /** Only what these runners have. */
  heldBy?: readonly RunnerId[]
  /** How long others may hold what is to be locked; without it, as long as any statement may wait. */
  lockMs?: number | undefined
  /** Nobody is waited for who holds one of them, or a parent: it is left out. */
  skipsLocked?: boolean
}

/** What was decided: `moved` are written and announced, `answer` is what the caller gets. */
export interface Decision<T> {
  moved: Iterable<Moving>
  answer: T
}

/**
 * The one way in which runs move: lock, decide, save, commit, and then tell those who wait. What `decide` writes itself
 * is written with the moves or not at all, and before them: they may lock concurrency groups, for which others wait
 * until the commit. Throws what `decide` throws; then nothing has happened.
 */
export async function moveRuns<T>(
  deps: MoveDeps,
  locking: Locking,
  decide: (tx: Tx, runs: Map<string, Moving>) => Promise<Decision<T>>,
): Promise<T> {
  const { moved, answer } = await deps.db.begin(async (tx) => {
    const done = await moveRunsIn(tx, locking, decide)
    // Before the commit: of two sleeps of a run that are over, the shorter one is seen first.
    for (const run of done.moved)
      for (const { due } of run.journal.entries) if (due && 'at' in due) deps.floors.timers.lower(due.at)
    return done
  })
  announce(deps, moved)
  return answer
}

/** The same within the transaction of somebody who announces, after its commit, what has moved. */
export async function moveRunsIn<T>(
  tx: Tx,
  { ids, ending = ids, heldBy, lockMs, skipsLocked }: Locking,
  decide: (tx: Tx, runs: Map<string, Moving>) => Promise<Decision<T>>,
): Promise<{ moved: Moving[]; answer: T }> {
  if (lockMs !== undefined) await tx`select set_config('lock_timeout', ${String(lockMs)}, true)`
  const runs = heldBy ? await lockRunsOf(tx, heldBy, ids, ending) : await lockRuns(tx, ids, ending, skipsLocked)
  const decided = await decide(tx, runs)
  const moved = [...decided.moved]
  await saveMoves(tx, moved)
  return { moved, answer: decided.answer }
}
