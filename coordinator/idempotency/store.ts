import type { DeliveryId, OrgId, RunId, ScheduleId } from '@windlass/shared/ids.ts'
import type { Db, Sql, Tx } from '../db/client.ts'

const KEY_HOURS = 24

/** What a request under a key can make. */
export type MadeId = RunId | DeliveryId | ScheduleId

/**
 * A key and what is asked for under it. The columns are named after triggers, for which they were made: `workflow_id`
 * has the scope, and `run_id` what was made. Coordinators of before read them while an upgrade is under way.
 */
export interface Claim {
  orgId: OrgId
  /** What the key counts for: a workflow; of a replay the webhook or connection where the delivery came in. */
  scope: string
  key: string
  requestHash: Buffer
}

/** What was asked for first under a key. */
export interface FirstRequest {
  madeId: MadeId
  requestHash: Buffer
}

/** The first request under a key that has not expired. */
export async function findKey(sql: Sql, { orgId, scope, key }: Claim): Promise<FirstRequest | undefined> {
  const [row] = await sql<FirstRequest[]>`
    select run_id as made_id, request_hash
    from idempotency_keys
    where org_id = ${orgId} and workflow_id = ${scope} and key = ${key} and expires_at > now()`
  return row
}

/**
 * Takes a key for what is being made, or answers whose it is. Waits for a transaction that is taking the same key: if
 * that fails the key is free, and its commit is seen by the next statement. An expired key counts as free.
 */
export async function takeKey(tx: Tx, claim: Claim, madeId: MadeId): Promise<FirstRequest | undefined> {
  const { orgId, scope, key, requestHash } = claim
  const taken = await tx`
    insert into idempotency_keys (org_id, workflow_id, key, request_hash, run_id, expires_at)
    values (${orgId}, ${scope}, ${key}, ${requestHash}, ${madeId}, now() + ${KEY_HOURS} * interval '1 hour')
    on conflict (org_id, workflow_id, key) do update
    set request_hash = excluded.request_hash, run_id = excluded.run_id, expires_at = excluded.expires_at
    where idempotency_keys.expires_at <= now()
    returning run_id`
  if (taken.length > 0) return undefined
  // `now()` stands still in a transaction, so what was not expired then is not expired here.
  return findKey(tx, claim)
}

/** The request of this key, which the transaction has taken, is answered by another run. */
export async function pointKey(tx: Tx, { orgId, scope, key }: Claim, runId: RunId): Promise<void> {
  await tx`
    update idempotency_keys
    set run_id = ${runId}
    where org_id = ${orgId} and workflow_id = ${scope} and key = ${key}`
}

/** Removed in one statement: some tens of milliseconds of it. */
const PORTION = 5000

/** In portions: an org can leave so many that one statement would never end. */
export async function cleanKeys(db: Db): Promise<void> {
  for (;;) {
    const { count } = await db`
      delete from idempotency_keys
      where ctid = any(array(select ctid from idempotency_keys where expires_at <= now() limit ${PORTION}))
        and expires_at <= now()`
    if (count < PORTION) return
  }
}
