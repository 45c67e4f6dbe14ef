import { Fault } from '@windlass/shared/errors.ts'
import type { OrgId, WorkflowId, WorkflowRef } from '@windlass/shared/ids.ts'
import type { Revocable } from '../../actor.ts'
import type { Resolved, Targets } from '../../workflows/targets.ts'
import { whyNotStart } from '../rules/may-start.ts'

interface Wanted {
  workflow: WorkflowRef
  version?: number | undefined
}

/**
 * The one guard of every way in: what a new run would execute, where one may start. Throws NOT_FOUND where there is no
 * such workflow, or it is deleted, and WORKFLOW_DISABLED. Targets are remembered for a second: a coordinator refuses at
 * once what was disabled or deleted through it, and what was through another one as soon as it hears of it, or when
 * that second is over. After a wait it is asked again. A run that slips in meanwhile is like one that was queued
 * before: it goes on.
 */
export async function mayStart(deps: { targets: Targets }, orgId: OrgId, wanted: Wanted): Promise<Resolved> {
  const found = await findVersion(deps, orgId, wanted)
  const refusal = whyNotStart({ slug: found.version.slug, disabled: found.disabled })
  if (refusal) throw refusal
  return found
}

/** After a wait: the credential may be lost, and the workflow disabled or deleted since it was looked at. */
export async function mayStillStart(
  deps: { targets: Targets },
  who: Revocable & { orgId: OrgId },
  { workflowId }: { workflowId: WorkflowId },
): Promise<void> {
  await who.stay()
  // By its id: the slug may be that of another one by now.
  await mayStart(deps, who.orgId, { workflow: workflowId })
}

/** The version that would be executed, whether or not a run of it may start, and there is a pool for it. */
export async function findVersion(
  deps: { targets: Targets },
  orgId: OrgId,
  { workflow, version }: Wanted,
): Promise<Resolved> {
  const found = await deps.targets.resolve(orgId, workflow, version)
  if (found) return found
  const which = version ? `no version ${version} of the workflow` : 'no workflow'
  throw new Fault(
    'NOT_FOUND',
    { workflow, ...(version ? { version } : {}) },
    `There is ${which} \`${workflow}\` in this org.`,
  )
}
