import type { Log } from '@windlass/shared/log.ts'
import { record } from '../audit/record.ts'
import type { Db } from '../db/client.ts'
import { makePurged } from './lifecycle.ts'
import * as store from './store-lifecycle.ts'

/** Looked at in one hour; the rest waits for the next one. */
const AT_ONCE = 500

/** Workflows go for good 30 days after they were deleted, and not before their last run has ended. */
export async function purgeWorkflows(deps: { db: Db; log: Log }): Promise<void> {
  for (const workflow of await store.listExpired(deps.db, AT_ONCE))
    if (await purge(deps.db, workflow)) deps.log('workflow.purged', { ...workflow })
}

function purge(db: Db, workflow: store.Expired): Promise<boolean> {
  const { orgId, workflowId, slug } = workflow
  return db.begin(async (tx) => {
    if (!(await store.lockExpired(tx, workflow)) || (await store.hasUnfinished(tx, workflow))) return false
    await makePurged(tx, workflow)
    const by = { kind: 'system', id: 'coordinator', name: 'coordinator', via: 'system', requestId: null } as const
    const target = { type: 'workflow', id: workflowId, name: slug }
    await record(tx, { ...by, orgId }, { action: 'workflows.purge', target })
    return true
  })
}
