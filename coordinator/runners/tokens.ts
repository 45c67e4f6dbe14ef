import { Fault } from '@windlass/shared/errors.ts'
import type { PoolRef, RegistrationTokenId } from '@windlass/shared/ids.ts'
import type { RegistrationToken } from '@windlass/shared/model/registration-token.ts'
import type { Acting, Caller } from '../actor.ts'
import { record } from '../audit/record.ts'
import type { Db, Sql, Tx } from '../db/client.ts'
import { findPool } from './store.ts'
import * as store from './store-tokens.ts'

/** The tokens of a pool that still let somebody in. */
export async function listTokens(
  deps: { db: Db },
  caller: Caller,
  ref: PoolRef,
  page: { before: string | undefined; limit: number },
): Promise<RegistrationToken[]> {
  const pool = await findPool(deps.db, caller.orgId, ref)
  if (!pool) throw new Fault('NOT_FOUND', { pool: ref })
  return (await store.list(deps.db, pool.id, page)).map(presentToken)
}

export async function needToken(
  deps: { db: Sql },
  caller: Caller,
  id: RegistrationTokenId,
): Promise<RegistrationToken> {
  const row = await store.find(deps.db, caller.orgId, id)
  if (!row) throw new Fault('NOT_FOUND', { token: id })
  return presentToken(row)
}

/** An agent that registers with it at this moment has either done so, or finds it gone. */
export async function revokeToken(deps: { db: Db }, caller: Acting, id: RegistrationTokenId): Promise<void> {
  await deps.db.begin(async (tx) => {
    const { pool, usesLeft, expiresAt, createdBy } = await needToken({ db: tx }, caller, id)
    if (!(await store.remove(tx, id))) throw new Fault('NOT_FOUND', { token: id })
    const before = { pool, usesLeft, expiresAt, createdBy }
    await record(tx, caller, { action: 'pools.revokeToken', target: { type: 'registration_token', id }, before })
  })
}

/**
 * Ends those that a key or session has made, whose row the caller holds: it makes no more. Answers how many would have
 * let somebody in.
 */
export function revokeTokensOf(tx: Tx, author: string): Promise<number> {
  return store.removeOf(tx, author)
}

function presentToken(row: store.ListedToken): RegistrationToken {
  const { id, poolId, pool, usesLeft, createdAt, createdBy, expiresAt } = row
  return {
    id,
    pool: { id: poolId, name: pool },
    usesLeft,
    createdAt: createdAt.getTime(),
    createdBy,
    expiresAt: expiresAt.getTime(),
  }
}
