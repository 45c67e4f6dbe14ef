import { assertMove, type FinalStatus, type RunStatus } from '@windlass/shared/model/run.ts'
import type { Tx } from '../db/client.ts'
import * as events from '../events/store.ts'
import type { Moving } from './row.ts'
import * as store from './store.ts'

/** Locks runs and takes them in hand. */
export async function lockRuns(tx: Tx, ids: readonly string[]): Promise<Map<string, Moving>> {
  const rows = await store.lock(tx, [...new Set(ids)])
  return new Map(rows.map((row) => [row.id, moving(row)]))
}

function moving(row: store.LockedRow): Moving {
  return {
    ...row,
    output: null,
    error: null,
    computeMs: 0,
    started: false,
    released: false,
    requeued: false,
    events: [],
  }
}

/** Adds an event to the log. The cursor is taken under the row's lock, so its order is the order of commits. */
export function emit(run: Moving, event: Pick<events.NewEvent, 'at' | 'channel' | 'type' | 'dataText'>): void {
  run.cursor++
  run.events.push({ runId: run.id, cursor: run.cursor, ...event })
}

/** Moves the run and says so in its log. */
export function move(run: Moving, to: RunStatus, at: number, data: Record<string, unknown> = {}): void {
  assertMove(run.status, to)
  run.status = to
  emit(run, { at, channel: 'lifecycle', type: `run.${to}`, dataText: JSON.stringify(data) })
}

export function finish(run: Moving, to: FinalStatus, at: number, data: Record<string, unknown> = {}): void {
  move(run, to, at, data)
  run.released = true
}

/** Back into the queue, to be executed from the top. */
export function requeue(run: Moving, at: number, data: Record<string, unknown>): void {
  move(run, 'queued', at, data)
  run.released = true
  run.requeued = true
}

/** Writes what has changed. One statement a table, sent together; the order is the one in which they execute. */
export async function saveMoves(tx: Tx, runs: Moving[]): Promise<void> {
  if (runs.length === 0) return
  const released = runs.filter((run) => run.released)
  const requeued = runs.filter((run) => run.requeued)
  const isOnlyEvents = runs.every((run) => !run.started && !run.released && run.status !== 'cancelling')
  const written = runs.flatMap((run) => run.events)
  const writes = [isOnlyEvents ? store.advance(tx, runs) : store.update(tx, runs), events.insert(tx, written)]
  if (released.length > 0) writes.push(store.release(tx, released))
  if (requeued.length > 0) writes.push(store.enterQueue(tx, requeued))
  await Promise.all(writes)
}
