/** Keys and sessions in every state that a credential can be in. */
import { mintSecret, SHOWN_LENGTH } from '@windlass/shared/api-key.ts'
import { type KeyId, newId, type OrgId } from '@windlass/shared/ids.ts'
import type { Role, Scope } from '@windlass/shared/scopes.ts'
import { createKey } from '../../accounts/api-keys.ts'
import { digest } from '../../accounts/secret.ts'
import { createSession } from '../../accounts/sessions.ts'
import { insertKey } from '../../accounts/store.ts'
import type { Db } from '../../db/client.ts'

export interface CredentialAsk {
  orgId: OrgId
  role?: Role
  scopes?: readonly Scope[]
  /** A credential that serves no more. */
  state?: 'expired' | 'revoked'
}

export const aSystemAuthor = (orgId: OrgId) =>
  ({ kind: 'system', id: 'test', name: 'test', orgId, via: 'system', requestId: null }) as const

/** An owner's unless said otherwise. */
export async function aKey(db: Db, ask: CredentialAsk): Promise<string> {
  const { orgId, role = 'owner', scopes = [], state } = ask
  const { apiKey, key } = await createKey(db, aSystemAuthor(orgId), { name: newId('req'), role, scopes })
  if (state === 'expired') await db`update api_keys set expires_at = now() where id = ${apiKey.id}`
  if (state === 'revoked') await db`update api_keys set revoked_at = now() where id = ${apiKey.id}`
  return key
}

/** An owner's unless said otherwise. */
export async function aSession(db: Db, ask: Omit<CredentialAsk, 'scopes'>): Promise<string> {
  const { orgId, role = 'owner', state } = ask
  const { session, secret } = await createSession(db, aSystemAuthor(orgId), {
    name: newId('req'),
    role,
    lifeMs: 3_600_000,
  })
  if (state === 'expired') await db`update operator_sessions set expires_at = now() where id = ${session.id}`
  if (state === 'revoked') await db`update operator_sessions set revoked_at = now() where id = ${session.id}`
  return secret
}

/** A key of which no audit log tells: it stands there before the test begins. */
export async function mintApiKey(
  db: Db,
  { orgId, name, role, scopes = [] }: { orgId: OrgId; name: string; role: Role; scopes?: readonly Scope[] },
): Promise<{ id: KeyId; key: string }> {
  const key = mintSecret('wl_')
  const id = newId('key')
  const shown = { prefix: key.slice(0, SHOWN_LENGTH), name, role, scopes: [...scopes] }
  await insertKey(db, { id, orgId, hash: digest(key), ...shown, expiresAt: null, createdBy: null })
  return { id, key }
}
