import type { JobId } from '@windlass/shared/ids.ts'
import type { Tx } from '../db/client.ts'
import { enqueue } from '../jobs/queue.ts'

/** The next turn of a job, in the place of one that was to come. Turns wait in one line: jobs of all orgs alternate. */
export function enqueueTurn(tx: Tx, jobId: JobId, inMs: number): Promise<void> {
  return enqueue(tx, 'runs:bulk', [{ payload: { jobId }, inMs, key: `bulk:${jobId}` }])
}
