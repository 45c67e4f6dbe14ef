import type { OrgId, RunId } from '@windlass/shared/ids.ts'
import { type CancelDeps, cancelDescendants as cancel } from '../engine/commit/cancel.ts'
import { enqueueDescents } from '../engine/commit/enqueue-descents.ts'
import { type Jobs, TURN_MS } from './queue.ts'

/**
 * Cancels what whoever asked has left: his coordinator was killed, or the tree is large. Done in slices, since other
 * orgs wait for the same workers.
 */
export async function cancelDescendants(deps: CancelDeps, job: Jobs['runs:cancelDescendants']): Promise<void> {
  const { runId, orgId, by, reason, upTo } = job
  const below = { orgId: orgId as OrgId, runId: runId as RunId, upTo }
  const isAll = await cancel(deps, below, { by, reason }, TURN_MS)
  if (!isAll) await deps.db.begin((tx) => enqueueDescents(tx, [job], 0))
}
