import { randomUUID } from 'node:crypto'
import type { Tx } from '../../db/client.ts'
import { enqueue, type NewJob, type Parent } from '../../jobs/queue.ts'

/**
 * One job for all of an org that are cancelled together: with one for each, the org's other jobs would stand behind
 * thousands that find nothing, as most runs with entries have called nobody.
 */
export function enqueueDescents(
  tx: Tx,
  descents: readonly (Parent & { orgId: string })[],
  inMs: number,
): Promise<void> {
  const jobs: NewJob<'runs:cancelBelow'>[] = []
  for (const [orgId, own] of Map.groupBy(descents, (descent) => descent.orgId)) {
    const parents = own.map(({ orgId: _, ...parent }) => parent)
    jobs.push({ payload: { orgId, parents }, inMs, key: keyOf(parents) })
  }
  return enqueue(tx, 'runs:cancelBelow', jobs)
}

/** The later job of a run alone replaces the earlier one; several together are a job of their own. */
function keyOf([first, ...others]: readonly Parent[]): string {
  return `cancel-below:${others.length > 0 ? randomUUID() : `${first!.runId}:${first!.upTo ?? 'all'}`}`
}
