import type { OrgId, SessionId } from '@windlass/shared/ids.ts'
import type { Role } from '@windlass/shared/scopes.ts'
import type { Sql, Tx } from '../db/client.ts'

export interface SessionState {
  isExpired: boolean
  isRevoked: boolean
}

export interface SessionCredentialRow extends SessionState {
  id: SessionId
  name: string
  orgId: OrgId
  org: string
  role: Role
}

export async function findByHash(sql: Sql, hash: Uint8Array): Promise<SessionCredentialRow | undefined> {
  const [row] = await sql<SessionCredentialRow[]>`
    select
      s.id,
      s.name,
      s.org_id,
      orgs.slug as org,
      s.role,
      s.expires_at <= now() as is_expired,
      s.revoked_at is not null as is_revoked
    from operator_sessions s
    join orgs on orgs.id = s.org_id
    where s.hash = ${hash}`
  return row
}

/** Its revocation waits until the transaction has ended. */
export async function hold(tx: Tx, id: string): Promise<SessionState | undefined> {
  const [row] = await tx<SessionState[]>`
    select expires_at <= now() as is_expired, revoked_at is not null as is_revoked
    from operator_sessions
    where id = ${id}
    for key share`
  return row
}

export interface SessionRow {
  id: SessionId
  org: string
  name: string
  role: Role
  createdAt: Date
  expiresAt: Date
  revokedAt: Date | null
}

export interface NewSession {
  id: SessionId
  orgId: OrgId
  hash: Uint8Array
  name: string
  role: Role
  lifeMs: number
}

export async function insert(sql: Sql, session: NewSession): Promise<SessionRow> {
  const [row] = await sql<[SessionRow]>`
    with made as (
      insert into operator_sessions (id, org_id, hash, name, role, expires_at)
      values (${session.id}, ${session.orgId}, ${session.hash}, ${session.name}, ${session.role},
              now() + ${session.lifeMs} * interval '1 millisecond')
      returning *
    )
    select made.id, orgs.slug as org, made.name, made.role, made.created_at, made.expires_at, made.revoked_at
    from made
    join orgs on orgs.id = made.org_id`
  return row
}

/** Newest first, with those that serve no more. */
export async function list(sql: Sql, orgId: OrgId | undefined): Promise<SessionRow[]> {
  return sql<SessionRow[]>`
    select s.id, orgs.slug as org, s.name, s.role, s.created_at, s.expires_at, s.revoked_at
    from operator_sessions s
    join orgs on orgs.id = s.org_id
    where ${orgId === undefined ? sql`true` : sql`s.org_id = ${orgId}`}
    order by s.id desc`
}

export interface RevocableSession {
  id: SessionId
  orgId: OrgId
  name: string
  role: Role
  isRevoked: boolean
}

/** Locked until the transaction ends: it is revoked once. */
export async function lock(sql: Sql, by: { id: string } | { hash: Uint8Array }): Promise<RevocableSession | undefined> {
  const [row] = await sql<RevocableSession[]>`
    select id, org_id, name, role, revoked_at is not null as is_revoked
    from operator_sessions
    where ${'id' in by ? sql`id = ${by.id}` : sql`hash = ${by.hash}`}
    for update`
  return row
}

export async function revoke(sql: Sql, id: SessionId): Promise<void> {
  await sql`update operator_sessions set revoked_at = now() where id = ${id}`
}

/** How long a session of this hash still serves, in milliseconds; undefined when it does not. */
export async function timeLeft(sql: Sql, hash: Uint8Array, org: string): Promise<number | undefined> {
  const [row] = await sql<{ leftMs: number }[]>`
    select (extract(epoch from s.expires_at - now()) * 1000)::float8 as left_ms
    from operator_sessions s
    join orgs on orgs.id = s.org_id
    where s.hash = ${hash} and orgs.slug = ${org} and s.revoked_at is null and s.expires_at > now()`
  return row?.leftMs
}
