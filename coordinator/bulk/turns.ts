import type { Tx } from '../db/client.ts'
import { type BulkTurn, enqueue } from '../jobs/queue.ts'

/**
 * Jobs of one org take turns in one place of the line, however many it has: orgs alternate, not their jobs. A list that
 * is there already is joined to: graphile-worker appends to a payload that is an array.
 */
export function enqueueTurns(tx: Tx, turns: readonly BulkTurn[], inMs: number): Promise<void> {
  const [first] = turns
  if (!first) return Promise.resolve()
  return enqueue(tx, 'runs:bulkTurns', [{ payload: [...turns], inMs, key: `bulk:${first.orgId}` }])
}

/** A turn of one job, apart from the list of its org. */
export function putOff(tx: Tx, turn: BulkTurn, inMs: number): Promise<void> {
  return enqueue(tx, 'runs:bulkTurns', [{ payload: [turn], inMs, key: `bulk:${turn.jobId}` }])
}

/** Each job once, in the place that it was given last. */
export function inOrder(turns: readonly BulkTurn[]): BulkTurn[] {
  const last = new Map(turns.toReversed().map((turn) => [turn.jobId, turn]))
  return [...last.values()].toReversed()
}
