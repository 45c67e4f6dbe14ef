import { isWellFormed, mintSecret, SHOWN_LENGTH } from '@windlass/shared/api-key.ts'
import { Fault } from '@windlass/shared/errors.ts'
import { newId, type OrgId } from '@windlass/shared/ids.ts'
import type { ApiKey } from '@windlass/shared/model/api-key.ts'
import { hasRole, type Role, type Scope } from '@windlass/shared/scopes.ts'
import { LAST_MOMENT } from '@windlass/shared/time.ts'
import type { Callers } from './callers.ts'
import { type Author, record } from '../audit/record.ts'
import type { Db, Sql, Tx } from '../db/client.ts'
import { nameOf } from './name.ts'
import type { Operator } from './operator.ts'
import { digest } from './secret.ts'
import { type EndedWith, endWith, NOTHING } from './ended-with.ts'
import * as store from './store.ts'

export interface KeyAsk {
  name: string
  role: Role
  /** Empty: everything that the role may do. */
  scopes?: readonly Scope[]
  /** Milliseconds since the epoch; left out: never. */
  expiresAt?: number | undefined
}

/**
 * Makes a key of the author's org. Whoever has a role gives no higher one. The whole key is not stored: it is shown now
 * or never. `hold`: in the transaction, throws when the author's credential serves no more.
 */
export function createKey(
  db: Db,
  author: Author,
  ask: KeyAsk,
  hold?: (tx: Tx) => Promise<void>,
): Promise<{ apiKey: ApiKey; key: string }> {
  if ('role' in author && !hasRole(author.role, ask.role)) {
    const message = `A session with the role ${author.role} makes keys up to that role; this asks for ${ask.role}.`
    throw new Fault('FORBIDDEN', { path: 'role', needs: { role: ask.role } }, message)
  }
  return db.begin(async (tx) => {
    await hold?.(tx)
    const { key, row } = await insert(tx, author, ask)
    const apiKey = present(row)
    const { id, name, prefix, role, scopes, expiresAt } = apiKey
    const after = { name, prefix, role, scopes, expiresAt }
    await record(tx, author, { action: 'keys.create', target: { type: 'key', id, name }, after })
    return { apiKey, key }
  })
}

async function insert(tx: Sql, author: Author, ask: KeyAsk): Promise<{ key: string; row: store.KeyRow }> {
  const { role, scopes = [] } = ask
  const key = mintSecret('wl_')
  const row = await store.insertKey(tx, {
    id: newId('key'),
    orgId: author.orgId,
    hash: digest(key),
    prefix: key.slice(0, SHOWN_LENGTH),
    name: nameOf(ask.name),
    role,
    scopes: [...new Set(scopes)],
    expiresAt: dateOf(ask.expiresAt),
    createdBy: author.id,
  })
  if (!row) throw wrongExpiry()
  return { key, row }
}

function dateOf(expiresAt: number | undefined): Date | null {
  if (expiresAt === undefined) return null
  if (expiresAt > LAST_MOMENT || expiresAt < 0) throw wrongExpiry()
  return new Date(expiresAt)
}

function wrongExpiry(): Fault {
  const message =
    '`expiresAt` must lie in the future and before the year 10000, in milliseconds since the Unix epoch; leave it out for a key that does not expire.'
  return new Fault('VALIDATION_FAILED', { path: 'expiresAt' }, message)
}

export interface KeyPage {
  /** Of the last key that the caller has seen. */
  before: string | undefined
  limit: number
}

export async function listKeys(deps: { db: Db }, orgId: OrgId, page: KeyPage): Promise<ApiKey[]> {
  return (await store.listKeys(deps.db, orgId, page)).map(present)
}

/**
 * Ends a key for good, here at once and elsewhere within a second, with the registration tokens that it has made. Again
 * is no error, and no entry in the audit log.
 */
export async function revokeKey(deps: { db: Db; callers: Callers }, author: Author, id: string): Promise<Revoked> {
  const revoked = await deps.db.begin((tx) => revoke(tx, author, { id }, author.orgId))
  deps.callers.forget(id)
  return revoked
}

/** The same for an operator, who names a key of any org by its id or by itself. Answers whether it was this call that ended it. */
export function revokeAnyKey(db: Db, operator: Operator, key: string): Promise<Revoked> {
  return db.begin((tx) => revoke(tx, operator, isWellFormed('wl_', key) ? { hash: digest(key) } : { id: key }))
}

/** With the numbers of what was ended by this call. */
export interface Revoked extends EndedWith {
  id: string
  name: string
  isNew: boolean
}

async function revoke(
  tx: Tx,
  by: Author | Operator,
  key: { id: string } | { hash: Uint8Array },
  orgId?: OrgId,
): Promise<Revoked> {
  const row = await store.lockKey(tx, key, orgId)
  if (!row) throw new Fault('NOT_FOUND', 'id' in key ? { key: key.id } : {}, 'There is no such API key.')
  const { id, name, prefix, role, scopes, isRevoked } = row
  if (isRevoked) return { id, name, isNew: false, ...NOTHING }
  await store.revokeKey(tx, id, by.id)
  const author = { ...by, orgId: row.orgId }
  const ended = await endWith(tx, author, id)
  const before = { name, prefix, role, scopes, ...ended }
  await record(tx, author, { action: 'keys.revoke', target: { type: 'key', id, name }, before })
  return { id, name, isNew: true, ...ended }
}

function present(row: store.KeyRow): ApiKey {
  return {
    ...row,
    createdAt: row.createdAt.getTime(),
    expiresAt: row.expiresAt?.getTime() ?? null,
    lastUsedAt: row.lastUsedAt?.getTime() ?? null,
    revokedAt: row.revokedAt?.getTime() ?? null,
  }
}
