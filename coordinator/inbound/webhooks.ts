import { Fault } from '@windlass/shared/errors.ts'
import type { WorkflowId } from '@windlass/shared/ids.ts'
import type { Webhook, WebhookAuth } from '@windlass/shared/model/webhook.ts'
import type { Acting, Caller } from '../actor.ts'
import { record } from '../audit/record.ts'
import type { Db } from '../db/client.ts'
import { newOwnedSecret, ownedStates, replaceOwned } from '../environments/owned-secrets.ts'
import type { SecretKeys } from '../environments/secret-keys.ts'
import { type Address, addressOf } from './address.ts'
import type { WebhookRow } from './row.ts'
import * as store from './store.ts'
import { lastVerified } from './store-deliveries.ts'
import * as webhooks from './store-webhooks.ts'

type Deps = { db: Db }

export async function getWebhook(deps: Deps, caller: Caller, workflowId: WorkflowId, at: Address): Promise<Webhook> {
  return present(deps, await need(deps, caller, workflowId), at)
}

/** How deliveries prove where they come from. The secret stays. */
export async function setWebhook(
  deps: Deps,
  by: Acting,
  { workflowId, auth }: { workflowId: WorkflowId; auth: WebhookAuth },
  at: Address,
): Promise<Webhook> {
  const row = await need(deps, by, workflowId)
  await deps.db.begin(async (tx) => {
    await webhooks.lockWebhook(tx, by.orgId, row.id)
    const before = (await store.webhookOf(tx, by.orgId, row.workflowId))!
    await webhooks.setAuth(tx, by.orgId, row.id, auth)
    const target = targetOf(row)
    await record(tx, by, { action: 'webhooks.set', target, before: { auth: before.auth }, after: { auth } })
  })
  return present(deps, { ...row, auth }, at)
}

/** A new secret, shown now or never. The one of before serves on for `overlapMs`; with 0 no former one does. */
export async function rotateWebhook(
  deps: Deps & { secretKeys: SecretKeys },
  by: Acting,
  { workflowId, overlapMs }: { workflowId: WorkflowId; overlapMs: number },
  at: Address,
): Promise<{ webhook: Webhook; secret: string }> {
  const row = await need(deps, by, workflowId)
  const secret = newOwnedSecret()
  await deps.db.begin(async (tx) => {
    await webhooks.lockWebhook(tx, by.orgId, row.id)
    const owner = { orgId: by.orgId, ownerId: row.id }
    const { previousUntil } = await replaceOwned(tx, deps, owner, { secret, overlapMs })
    await webhooks.noteRotated(tx, by.orgId, row.id)
    const after = { previousSecretUntil: previousUntil?.getTime() ?? null }
    await record(tx, by, { action: 'webhooks.rotate', target: targetOf(row), after })
  })
  return { webhook: await getWebhook(deps, by, workflowId, at), secret }
}

const targetOf = ({ id, slug }: WebhookRow) => ({ type: 'webhook', id, name: slug })

async function need(deps: Deps, { orgId }: Caller, workflowId: WorkflowId): Promise<WebhookRow> {
  const row = await store.webhookOf(deps.db, orgId, workflowId)
  if (!row) throw new Fault('NOT_FOUND', { workflow: workflowId })
  return row
}

async function present({ db }: Deps, row: WebhookRow, at: Address): Promise<Webhook> {
  const state = (await ownedStates(db, row.orgId, [row.id])).get(row.id)
  const { environment = null, input = 'body', dedupe = null } = row.settings ?? {}
  return {
    id: row.id as Webhook['id'],
    ...addressOf(at, `/v1/hooks/${row.id}`),
    auth: row.auth,
    header: row.auth === 'bearer' ? 'Authorization' : 'X-Windlass-Signature',
    environment,
    input,
    dedupe,
    createdAt: row.createdAt.getTime(),
    rotatedAt: row.rotatedAt?.getTime() ?? null,
    previousSecretUntil: state?.previousUntil?.getTime() ?? null,
    lastDeliveryAt: (await lastVerified(db, row.orgId, row.id))?.getTime() ?? null,
  }
}
