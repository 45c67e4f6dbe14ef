import type { OrgId, RunId } from '@windlass/shared/ids.ts'
import { type CancelDeps, cancelDescendants as cancel } from '../engine/commit/cancel.ts'
import type { Jobs } from './queue.ts'

/** Whoever asked for the cancel may have been killed before all that the run had called was cancelled too. */
export async function cancelDescendants(deps: CancelDeps, job: Jobs['runs:cancelDescendants']): Promise<void> {
  const { runId, orgId, by, reason, upTo } = job
  await cancel(deps, { orgId: orgId as OrgId, runId: runId as RunId, upTo }, { by, reason })
}
