import type { OrgId } from '@windlass/shared/ids.ts'
import type { Log } from '@windlass/shared/log.ts'
import { ourselves } from '../audit/ourselves.ts'
import { record } from '../audit/record.ts'
import type { Db } from '../db/client.ts'
import { makePurged } from './lifecycle.ts'
import * as store from './store-lifecycle.ts'

/** Purged of an org in one hour; the rest waits for the next one. */
const AT_ONCE = 500

/**
 * Workflows go for good 30 days after they were deleted, and not before their last run has ended. One org at a time:
 * what one has does not keep those of the others.
 */
export async function purgeWorkflows(deps: { db: Db; log: Log }, atOnce = AT_ONCE): Promise<void> {
  for (const orgId of await store.orgsWithExpired(deps.db))
    await purgeOf(deps, orgId, atOnce).catch((error: unknown) =>
      deps.log.warn('workflows.purge.failed', { orgId, error }),
    )
}

async function purgeOf(deps: { db: Db; log: Log }, orgId: OrgId, atOnce: number): Promise<void> {
  // Of those that are deleted no run begins any more: what has none unfinished now will have none.
  for (const workflow of await store.listPurgeable(deps.db, orgId, atOnce))
    if (await purge(deps.db, workflow)) deps.log('workflow.purged', { ...workflow })
}

function purge(db: Db, workflow: store.Expired): Promise<boolean> {
  const { orgId, workflowId, slug } = workflow
  return db.begin(async (tx) => {
    if (!(await store.lockExpired(tx, workflow))) return false
    await makePurged(tx, workflow)
    const target = { type: 'workflow', id: workflowId, name: slug }
    await record(tx, ourselves(orgId), { action: 'workflows.purge', target })
    return true
  })
}
