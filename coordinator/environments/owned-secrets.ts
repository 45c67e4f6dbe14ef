import { randomBytes } from 'node:crypto'
import type { OrgId } from '@windlass/shared/ids.ts'
import type { Db, Sql, Tx } from '../db/client.ts'
import type { Seat } from './row.ts'
import type { SecretKeys } from './secret-keys.ts'
import { lockKeys } from './store-sealed.ts'
import * as store from './store-owned.ts'

export type { OwnedState } from './store-owned.ts'

// Secrets by which others prove who they are: of webhooks and connections. Nobody reads them back.

/** No environment is called so, nor is a secret of one called like an id. */
export function seatOf({ orgId, ownerId }: { orgId: OrgId; ownerId: string }): Seat {
  return { orgId, environment: '/owned', name: ownerId }
}

/** As Standard Webhooks has them: its libraries read what follows `whsec_` as base64. */
export function newOwnedSecret(): string {
  return `whsec_${randomBytes(32).toString('base64')}`
}

interface Owner {
  orgId: OrgId
  ownerId: string
}

/** Sets a secret in the transaction of its owner. Answers until when the one of before serves; null: there is none. */
export async function replaceOwned(
  tx: Tx,
  { secretKeys }: { secretKeys: SecretKeys },
  owner: Owner,
  { secret, overlapMs }: { secret: string; overlapMs: number },
): Promise<Date | null> {
  // From here to the commit the first key stays the first, so none goes by which this is sealed.
  await lockKeys(tx, 'to seal')
  const sealed = (await secretKeys.ring()).seal(seatOf(owner), secret)
  return store.replace(tx, { ...owner, sealed }, overlapMs)
}

/** Those that serve now, the current one first. Throws SECRETS_UNAVAILABLE where their key is missing. */
export async function openOwned(
  { db, secretKeys }: { db: Db; secretKeys: SecretKeys },
  ownerId: string,
): Promise<string[]> {
  const rows = await store.serving(db, ownerId)
  if (rows.length === 0) return []
  const ring = await secretKeys.ring()
  return rows.map((row) => ring.open(seatOf(row), row.sealed))
}

export async function ownedStates(
  sql: Sql,
  orgId: OrgId,
  ownerIds: readonly string[],
): Promise<Map<string, store.OwnedState>> {
  const states = await store.statesOf(sql, orgId, ownerIds)
  return new Map(states.map((state) => [state.ownerId, state]))
}

export async function removeOwned(tx: Tx, { orgId, ownerId }: Owner): Promise<void> {
  await store.remove(tx, orgId, ownerId)
}

/** Removes the secrets that were replaced and whose overlap has ended. */
export async function cleanOwnedSecrets({ db }: { db: Db }): Promise<void> {
  await store.removeEnded(db)
}
