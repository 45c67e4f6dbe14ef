import type { KeyId, OrgId } from '@windlass/shared/ids.ts'
import type { Role, Scope } from '@windlass/shared/scopes.ts'
import type { Sql, Tx } from '../db/client.ts'
import { onlyFilters } from '../db/by-key.ts'

export interface KeyState {
  isExpired: boolean
  isRevoked: boolean
}

export interface KeyCredentialRow extends KeyState {
  id: KeyId
  name: string
  orgId: OrgId
  org: string
  role: Role
  scopes: Scope[]
  /** True when `last_used_at` is a minute old, or was never set. */
  isStale: boolean
}

export async function findByHash(sql: Sql, hash: Uint8Array): Promise<KeyCredentialRow | undefined> {
  const [row] = await sql<KeyCredentialRow[]>`
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

/** A weak lock: notes of its use go on, and whoever revokes it waits. */
export async function holdKey(tx: Tx, id: string): Promise<KeyState | undefined> {
  const [row] = await tx<KeyState[]>`
    select coalesce(expires_at <= now(), false) as is_expired, revoked_at is not null as is_revoked
    from api_keys
    where id = ${id}
    for key share`
  return row
}

/** Two coordinators may come at once; the later one finds nothing left to do. */
export async function touchKey(sql: Sql, id: KeyId): Promise<void> {
  await sql`
    update api_keys
    set last_used_at = now()
    where id = ${id} and (last_used_at is null or last_used_at < now() - interval '1 minute')
  `
}

/** A key as lists show it. */
export interface KeyRow {
  id: KeyId
  org: string
  name: string
  prefix: string
  role: Role
  scopes: Scope[]
  createdAt: Date
  createdBy: string | null
  expiresAt: Date | null
  lastUsedAt: Date | null
  revokedAt: Date | null
}

export interface NewKey {
  id: KeyId
  orgId: OrgId
  hash: Uint8Array
  /** What a list shows of the key. */
  prefix: string
  name: string
  role: Role
  scopes: readonly Scope[]
  expiresAt: Date | null
  createdBy: string | null
}

/** Nothing when the key would have expired already. */
export async function insertKey(sql: Sql, key: NewKey): Promise<KeyRow | undefined> {
  const [row] = await sql<KeyRow[]>`
    with made as (
      insert into api_keys (id, org_id, hash, prefix, name, role, scopes, expires_at, created_by)
      select ${key.id}, ${key.orgId}, ${key.hash}, ${key.prefix}, ${key.name}, ${key.role}, ${[...key.scopes]}::text[],
             ${key.expiresAt}::timestamptz, ${key.createdBy}
      where coalesce(${key.expiresAt}::timestamptz > now(), true)
      returning *
    )
    select made.id, orgs.slug as org, made.name, prefix, role, scopes, made.created_at, created_by, expires_at,
           last_used_at, revoked_at
    from made
    join orgs on orgs.id = made.org_id`
  return row
}

/** Newest first, with those that serve no more. */
export async function listKeys(
  sql: Sql,
  orgId: OrgId,
  { before, limit }: { before: string | undefined; limit: number },
): Promise<KeyRow[]> {
  return sql<KeyRow[]>`
    select k.id, orgs.slug as org, k.name, k.prefix, k.role, k.scopes, k.created_at, k.created_by, k.expires_at,
           k.last_used_at, k.revoked_at
    from api_keys k
    join orgs on orgs.id = k.org_id
    where k.org_id = ${orgId} and ${before === undefined ? sql`true` : sql`k.id < ${before}`}
    order by k.id desc
    limit ${limit}`
}

export interface RevocableKey {
  id: KeyId
  orgId: OrgId
  name: string
  prefix: string
  role: Role
  scopes: Scope[]
  isRevoked: boolean
}

/** Locked until the transaction ends: it is revoked once. Of any org when none is given. */
export async function lockKey(
  sql: Sql,
  by: { id: string } | { hash: Uint8Array },
  orgId?: OrgId,
): Promise<RevocableKey | undefined> {
  const [row] = await sql<RevocableKey[]>`
    select id, org_id, name, prefix, role, scopes, revoked_at is not null as is_revoked
    from api_keys
    where ${'id' in by ? sql`id = ${by.id}` : sql`hash = ${by.hash}`}
      and ${orgId === undefined ? sql`true` : onlyFilters(sql, sql`org_id = ${orgId}`)}
    for update`
  return row
}

export async function revokeKey(sql: Sql, id: KeyId, by: string): Promise<void> {
  await sql`update api_keys set revoked_at = now(), revoked_by = ${by} where id = ${id}`
}
