import type { RunnerId } from '@windlass/shared/ids.ts'
import type { Tx } from '../../db/client.ts'
import { noChanges } from '../rules/journal.ts'
import type { Moving } from '../rules/run.ts'
import * as store from '../store/runs.ts'

/** Locks what these runners have of these runs, and the parents of those that may end. What is of others is let be. */
export async function lockRunsOf(
  tx: Tx,
  runnerIds: readonly RunnerId[],
  ids: readonly string[],
  ending: readonly string[],
): Promise<Map<string, Moving>> {
  const [held, mayEnd] = [[...new Set(ids)], [...ending]]
  return inHand(await store.lockHeld(tx, { runnerIds: [...new Set(runnerIds)], ids: held, ending: mayEnd }))
}

/**
 * Locks runs and takes them in hand. `ending` are those that may end now: their parents are locked with them, as the
 * end of a child completes the call of its parent in the same transaction. With `skipsLocked` those are left out that
 * others hold.
 */
export async function lockRuns(
  tx: Tx,
  ids: readonly string[],
  ending: readonly string[] = [],
  skipsLocked = false,
): Promise<Map<string, Moving>> {
  const wanted = [...new Set(ids)]
  const locking =
    ending.length === 0
      ? store.lock(tx, wanted, skipsLocked)
      : store.lockWithParents(tx, wanted, [...ending], skipsLocked)
  return inHand(await locking)
}

function inHand(rows: readonly store.LockedRow[]): Map<string, Moving> {
  const runs = new Map(rows.map((row) => [row.id as string, moving(row)]))
  for (const run of runs.values()) run.parent = run.parentRunId === null ? undefined : runs.get(run.parentRunId)
  return runs
}

function moving(row: store.LockedRow): Moving {
  const run: Unmarked = {
    ...row,
    blocked: row.blocked === null ? null : (JSON.parse(row.blocked) as Moving['blocked']),
    timedOut: row.timedOutAt !== null,
    output: null,
    error: null,
    computeMs: 0,
    started: false,
    isMoved: false,
    suspended: false,
    resumed: false,
    released: false,
    requeued: null,
    loss: null,
    lostAttempt: null,
    hostFailure: null,
    isUnbegun: false,
    isHeard: false,
    isolation: null,
    replayAfterMs: null,
    pokes: new Set(),
    events: [],
    journal: noChanges(),
    parent: undefined,
  }
  return run as Moving
}

/** What a run is but for the mark of its lock, which is no value. */
type Unmarked = { [K in keyof Moving as K extends string ? K : never]: Moving[K] }
