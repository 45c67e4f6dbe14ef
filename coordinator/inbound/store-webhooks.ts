import type { OrgId, WorkflowId } from '@windlass/shared/ids.ts'
import type { Descriptor } from '@windlass/shared/model/descriptor.ts'
import type { WebhookAuth } from '@windlass/shared/model/webhook.ts'
import type { Tx } from '../db/client.ts'
import { unnest } from '../db/unnest.ts'

export function insertWebhook(
  tx: Tx,
  { id, orgId, workflowId }: { id: string; orgId: OrgId; workflowId: WorkflowId },
): PromiseLike<unknown> {
  return tx`
    insert into webhooks (id, org_id, workflow_id)
    values (${id}, ${orgId}, ${workflowId})
    on conflict (workflow_id) do nothing`
}

/** Lets changes of a webhook wait for each other. */
export function lockWebhook(tx: Tx, orgId: OrgId, id: string): PromiseLike<unknown> {
  return tx`select from webhooks where id = ${id} and org_id = ${orgId} for update`
}

export function setAuth(tx: Tx, orgId: OrgId, id: string, auth: WebhookAuth): PromiseLike<unknown> {
  return tx`update webhooks set auth = ${auth} where id = ${id} and org_id = ${orgId}`
}

export function noteRotated(tx: Tx, orgId: OrgId, id: string): PromiseLike<unknown> {
  return tx`update webhooks set rotated_at = now() where id = ${id} and org_id = ${orgId}`
}

/** What the current version wants of connections, in place of what the one before wanted. */
export async function replaceWanted(
  tx: Tx,
  { orgId, workflowId }: { orgId: OrgId; workflowId: WorkflowId },
  wanted: Descriptor['connections'],
): Promise<void> {
  await tx`delete from workflow_connections where workflow_id = ${workflowId} and org_id = ${orgId}`
  if (wanted.length === 0) return
  await tx`
    insert into workflow_connections (workflow_id, n, org_id, connection, events, filter, environment)
    select ${workflowId}, n, ${orgId}, connection, array(select json_array_elements_text(events::json)), filter::json,
           environment
    from ${unnest(tx, 't', wanted, {
      connection: 'text',
      environment: 'text',
      events: ['text', (entry) => JSON.stringify(entry.events)],
      filter: ['text', (entry) => JSON.stringify(entry.filter)],
      n: ['int', (_, i) => i + 1],
    })}`
}

export function removeWebhook(
  tx: Tx,
  { orgId, workflowId }: { orgId: OrgId; workflowId: WorkflowId },
): Promise<{ id: string }[]> {
  return tx<{ id: string }[]>`
    delete from webhooks where workflow_id = ${workflowId} and org_id = ${orgId} returning id`
}
