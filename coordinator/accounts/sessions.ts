import { isWellFormed, mintSecret } from '@windlass/shared/api-key.ts'
import { Fault } from '@windlass/shared/errors.ts'
import { newId, type OrgId } from '@windlass/shared/ids.ts'
import type { Role } from '@windlass/shared/scopes.ts'
import { type Author, record } from '../audit/record.ts'
import type { Db, Sql } from '../db/client.ts'
import type { Revoked } from './api-keys.ts'
import { nameOf } from './name.ts'
import type { Operator } from './operator.ts'
import { digest } from './secret.ts'
import { endWith, NOTHING } from './ended-with.ts'
import * as store from './store-sessions.ts'

const DAY_MS = 86_400_000
export const LONGEST_SESSION_MS = 30 * DAY_MS

export interface OperatorSession {
  id: string
  org: string
  name: string
  role: Role
  createdAt: number
  expiresAt: number
  revokedAt: number | null
}

export interface MintedSession {
  session: OperatorSession
  /** The whole secret. It is not stored, so this is the only time it can be shown. */
  secret: string
}

/** Makes a session of the author's org. */
export function createSession(
  db: Db,
  author: Author,
  ask: { name: string; role: Role; lifeMs: number },
): Promise<MintedSession> {
  const { role, lifeMs } = ask
  const name = nameOf(ask.name)
  if (!(lifeMs >= 1000 && lifeMs <= LONGEST_SESSION_MS))
    throw new Fault('VALIDATION_FAILED', { path: 'for' }, 'A session lives for 1 second at least and 30 days at most.')
  const secret = mintSecret('wls_')
  return db.begin(async (tx) => {
    const id = newId('ses')
    const row = await store.insert(tx, { id, orgId: author.orgId, hash: digest(secret), name, role, lifeMs })
    const after = { name, role, expiresAt: row.expiresAt.getTime() }
    await record(tx, author, { action: 'sessions.create', target: { type: 'session', id, name }, after })
    return { session: present(row), secret }
  })
}

export async function listSessions(sql: Sql, orgId?: OrgId): Promise<OperatorSession[]> {
  return (await store.list(sql, orgId)).map(present)
}

/**
 * Ends a session, named by its id or by itself, with what it has made that ends with it. Answers whether it was this
 * call that ended it.
 */
export function revokeSession(db: Db, operator: Operator, session: string): Promise<Revoked> {
  const by = isWellFormed('wls_', session) ? { hash: digest(session) } : { id: session }
  return db.begin(async (tx) => {
    const row = await store.lock(tx, by)
    if (!row) throw new Fault('NOT_FOUND', {}, 'There is no such session.')
    const { id, orgId, name, role, isRevoked } = row
    if (isRevoked) return { id, name, isNew: false, ...NOTHING }
    await store.revoke(tx, id)
    const author = { ...operator, orgId }
    const ended = await endWith(tx, author, id)
    const target = { type: 'session', id, name }
    await record(tx, author, { action: 'sessions.revoke', target, before: { name, role, ...ended } })
    return { id, name, isNew: true, ...ended }
  })
}

/** How long a session still serves the org; undefined when it does not. */
export async function sessionTimeLeft(sql: Sql, secret: string, org: string): Promise<number | undefined> {
  return isWellFormed('wls_', secret) ? store.timeLeft(sql, digest(secret), org) : undefined
}

function present(row: store.SessionRow): OperatorSession {
  return {
    ...row,
    createdAt: row.createdAt.getTime(),
    expiresAt: row.expiresAt.getTime(),
    revokedAt: row.revokedAt?.getTime() ?? null,
  }
}
