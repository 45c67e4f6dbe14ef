import { newId, type OrgId, type WorkflowId } from '@windlass/shared/ids.ts'
import type { Descriptor } from '@windlass/shared/model/descriptor.ts'
import type { Tx } from '../db/client.ts'
import { removeOwned } from '../environments/owned-secrets.ts'
import * as store from './store-webhooks.ts'

/**
 * What a version wants of deliveries, in the transaction in which it becomes current. With the first one the webhook of
 * the workflow is made; it takes nothing before somebody has made a secret for it.
 */
export async function settleInbound(
  tx: Tx,
  which: { orgId: OrgId; workflowId: WorkflowId },
  { connections }: Pick<Descriptor, 'connections'>,
): Promise<void> {
  await store.insertWebhook(tx, { ...which, id: newId('hook') })
  await store.replaceWanted(tx, which, connections)
}

/** Of a workflow that is gone for good. What came in stays. */
export async function purgeInbound(tx: Tx, which: { orgId: OrgId; workflowId: WorkflowId }): Promise<void> {
  await store.replaceWanted(tx, which, [])
  for (const { id } of await store.removeWebhook(tx, which)) await removeOwned(tx, { orgId: which.orgId, ownerId: id })
}
