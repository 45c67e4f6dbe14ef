import type { OrgId, RunId } from '@windlass/shared/ids.ts'
import type { Log } from '@windlass/shared/log.ts'
import { type CancelDeps, cancelDescendants as cancel } from '../engine/commit/cancel.ts'
import { isConnectionLoss } from '../db/client.ts'
import { enqueueDescents } from '../engine/commit/enqueue-descents.ts'
import { type Jobs, type Parent, TURN_MS } from './queue.ts'

/**
 * Cancels what whoever asked has left: his coordinator was killed, or the tree is large. Done in slices, since other
 * orgs wait for the same workers.
 */
export async function cancelDescendants(
  deps: CancelDeps & { log: Log },
  { orgId, parents }: Jobs['runs:cancelBelow'],
  turnMs = TURN_MS,
): Promise<void> {
  const since = performance.now()
  const left: Parent[] = []
  const failures: unknown[] = []
  for (const parent of parents) {
    const leftMs = turnMs - (performance.now() - since)
    try {
      if (leftMs <= 0 || !(await cancelBelow(deps, orgId, parent, leftMs))) left.push(parent)
    } catch (error) {
      // Those of the others are not to wait for what may fail time and again.
      if (isConnectionLoss(error) || parents.length === 1) throw error
      failures.push(error)
      await again(deps, orgId, [parent], FAILED_REST_MS)
    }
  }
  if (failures.length > 0) deps.log.warn('runs.cancelBelow.failed', { count: failures.length, error: failures[0] })
  if (left.length > 0) await again(deps, orgId, left, 0)
}

/** A job for one run alone is tried again by whoever works on jobs, with longer and longer rests. */
const FAILED_REST_MS = 1000

function again(deps: CancelDeps, orgId: string, parents: readonly Parent[], inMs: number): Promise<void> {
  const descents = parents.map((parent) => ({ ...parent, orgId }))
  return deps.db.begin((tx) => enqueueDescents(tx, descents, inMs))
}

function cancelBelow(deps: CancelDeps, orgId: string, { runId, by, reason, upTo }: Parent, forMs: number) {
  const below = { orgId: orgId as OrgId, runId: runId as RunId, upTo }
  return cancel(deps, below, { by, reason }, forMs)
}
