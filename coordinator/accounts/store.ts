import type { KeyId, OrgId } from '@windlass/shared/ids.ts'
import type { Role, Scope } from '@windlass/shared/scopes.ts'
import type { Sql } from '../db/client.ts'

export interface ApiKeyRow {
  id: KeyId
  name: string
  orgId: OrgId
  org: string
  role: Role
  scopes: Scope[]
  isExpired: boolean
  isRevoked: boolean
  /** True when `last_used_at` is a minute old, or was never set. */
  isStale: boolean
}

export async function findByHash(sql: Sql, hash: Uint8Array): Promise<ApiKeyRow | undefined> {
  const [row] = await sql<ApiKeyRow[]>`
    select
      api_keys.id,
      api_keys.name,
      api_keys.org_id,
      orgs.slug as org,
      api_keys.role,
      api_keys.scopes,
      coalesce(api_keys.expires_at <= now(), false) as is_expired,
      api_keys.revoked_at is not null as is_revoked,
      coalesce(api_keys.last_used_at < now() - interval '1 minute', true) as is_stale
    from api_keys
    join orgs on orgs.id = api_keys.org_id
    where api_keys.hash = ${hash}
  `
  return row
}

export interface NewApiKey {
  id: KeyId
  orgId: OrgId
  hash: Uint8Array
  /** What a list shows of the key. */
  prefix: string
  name: string
  role: Role
  scopes: readonly Scope[]
}

export async function insertKey(sql: Sql, key: NewApiKey): Promise<void> {
  await sql`
    insert into api_keys (id, org_id, hash, prefix, name, role, scopes)
    values (${key.id}, ${key.orgId}, ${key.hash}, ${key.prefix}, ${key.name}, ${key.role}, ${[...key.scopes]})
  `
}

/** Two coordinators may come at once; the later one finds nothing left to do. */
export async function touchKey(sql: Sql, id: KeyId): Promise<void> {
  await sql`
    update api_keys
    set last_used_at = now()
    where id = ${id} and (last_used_at is null or last_used_at < now() - interval '1 minute')
  `
}
