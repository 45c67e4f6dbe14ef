import type { OrgId, RunId } from '@windlass/shared/ids.ts'
import { type CancelDeps, cancelDescendants as cancel } from '../engine/commit/cancel.ts'
import { enqueueDescents } from '../engine/commit/enqueue-descents.ts'
import { type Jobs, TURN_MS } from './queue.ts'

/**
 * Cancels what whoever asked has left: his coordinator was killed, or the tree is large. Done in slices, since other
 * orgs wait for the same workers.
 */
export async function cancelDescendants(
  deps: CancelDeps,
  { orgId, parents }: Jobs['runs:cancelBelow'],
  turnMs = TURN_MS,
): Promise<void> {
  const since = performance.now()
  for (const [at, { runId, by, reason, upTo }] of parents.entries()) {
    const below = { orgId: orgId as OrgId, runId: runId as RunId, upTo }
    const leftMs = turnMs - (performance.now() - since)
    if (leftMs > 0 && (await cancel(deps, below, { by, reason }, leftMs))) continue
    const left = parents.slice(at).map((parent) => ({ ...parent, orgId }))
    return deps.db.begin((tx) => enqueueDescents(tx, left, 0))
  }
}
