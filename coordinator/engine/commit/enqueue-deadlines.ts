import { randomUUID } from 'node:crypto'
import type { Tx } from '../../db/client.ts'
import { enqueue, type Jobs } from '../../jobs/queue.ts'

/** The later deadline of a run alone replaces the earlier one; several together are a job of their own. */
export function enqueueDeadlines(tx: Tx, payload: Jobs['runs:cancelDeadline'], inMs: number): Promise<void> {
  const { runs } = payload
  const key = runs.length === 1 ? `cancel:${runs[0]!.runId}` : `cancel:${randomUUID()}`
  return enqueue(tx, 'runs:cancelDeadline', [{ payload, inMs, key }])
}
