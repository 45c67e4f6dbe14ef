import { randomBytes } from 'node:crypto'
import { Fault } from '@windlass/shared/errors.ts'
import type { OrgId } from '@windlass/shared/ids.ts'
import type { Db, Sql, Tx } from '../db/client.ts'
import type { Seat } from './row.ts'
import type { KeyRing, SecretKeys } from './secret-keys.ts'
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

export interface Replacement {
  secret: string
  /** How long the one that is replaced serves on. With 0 none of before does, and those that did end too. */
  overlapMs: number
}

export interface Replaced {
  /** False: the secret is the one that there was, so that asking a second time changes nothing. */
  isNew: boolean
  /** Former secrets serve no more that did. */
  hasEnded: boolean
  /** Until then a former secret serves: of several the last. Null: none does. */
  previousUntil: Date | null
}

/**
 * Sets a secret in the transaction that has locked its owner. Former ones keep the end that they were promised:
 * whoever got no answer asks again, and his senders have the one of before that.
 */
export async function replaceOwned(
  tx: Tx,
  { secretKeys }: { secretKeys: SecretKeys },
  owner: store.Owner,
  { secret, overlapMs }: Replacement,
): Promise<Replaced> {
  // From here to the commit the first key stays the first, so none goes by which this is sealed.
  await lockKeys(tx, 'to seal')
  const ring = await secretKeys.ring()
  const serving = await store.lockServing(tx, owner)
  const current = serving.find((row) => row.slot === 'current')
  const isNew = current === undefined || !opensTo(ring, current, secret)
  if (overlapMs === 0) await store.removeFormer(tx, owner)
  else if (isNew && current) await store.serveOn(tx, { ...current, slot: freeSlot(serving) }, overlapMs)
  if (isNew) await store.setCurrent(tx, { ...owner, sealed: ring.seal(seatOf(owner), secret) })
  const [state] = await store.statesOf(tx, owner.orgId, [owner.ownerId])
  const hasEnded = overlapMs === 0 && serving.some((row) => row.slot !== 'current')
  return { isNew, hasEnded, previousUntil: state?.previousUntil ?? null }
}

/** One that does not open is replaced by whatever comes. */
function opensTo(ring: KeyRing, row: store.OwnedRow, secret: string): boolean {
  try {
    return ring.open(seatOf(row), row.sealed) === secret
  } catch (error) {
    if (error instanceof Fault) return false
    throw error
  }
}

/** Each delivery that is not verified is tried by all of them, so they are few. */
function freeSlot(serving: readonly store.OwnedRow[]): store.FormerSlot {
  const free = store.FORMER.find((slot) => serving.every((row) => row.slot !== slot))
  if (free !== undefined) return free
  throw new Fault(
    'CONFLICT',
    { path: 'overlapMs', former: store.FORMER.length },
    `${store.FORMER.length} former secrets serve still, which is the most. Ask again when one of them has ended, or ` +
      'with `overlapMs` 0 (`--overlap 0s`), which ends all of them and the current one at once.',
  )
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

export async function removeOwned(tx: Tx, { orgId, ownerId }: store.Owner): Promise<void> {
  await store.remove(tx, orgId, ownerId)
}

/** Removes the secrets that were replaced and whose overlap has ended. */
export async function cleanOwnedSecrets({ db }: { db: Db }): Promise<void> {
  await store.removeEnded(db)
}
