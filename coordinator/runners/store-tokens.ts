import type { OrgId, PoolId, RegistrationTokenId } from '@windlass/shared/ids.ts'
import { onlyFilters } from '../db/by-key.ts'
import type { Sql, Tx } from '../db/client.ts'

/** A token as lists show it. */
export interface ListedToken {
  id: RegistrationTokenId
  poolId: PoolId
  pool: string
  usesLeft: number
  createdAt: Date
  createdBy: string
  expiresAt: Date
}

const tokens = (sql: Sql) => sql`
  select t.id, t.pool_id, p.name as pool, t.uses_left, t.created_at, t.created_by, t.expires_at
  from registration_tokens t
  join runner_pools p on p.id = t.pool_id`

/** Newest first, without those that have expired or were used up. */
export function list(
  sql: Sql,
  poolId: PoolId,
  { before, limit }: { before: string | undefined; limit: number },
): PromiseLike<ListedToken[]> {
  return sql<ListedToken[]>`
    ${tokens(sql)}
    where t.pool_id = ${poolId} and t.uses_left > 0 and t.expires_at > now()
      and ${before === undefined ? sql`true` : sql`t.id < ${before}`}
    order by t.id desc
    limit ${limit}`
}

export async function find(sql: Sql, orgId: OrgId, id: RegistrationTokenId): Promise<ListedToken | undefined> {
  const [row] = await sql<ListedToken[]>`
    ${tokens(sql)}
    where t.id = ${id} and ${onlyFilters(sql, sql`p.org_id = ${orgId}`)}`
  return row
}

/** Answers whether the token was there. */
export async function remove(tx: Tx, id: RegistrationTokenId): Promise<boolean> {
  return (await tx`delete from registration_tokens where id = ${id} returning id`).length > 0
}

/** Removes the tokens that a key or session made. Answers how many served still. */
export async function removeOf(tx: Tx, author: string): Promise<number> {
  const [row] = await tx<[{ count: number }]>`
    with removed as (
      delete from registration_tokens
      where created_by = ${author}
      returning uses_left > 0 and expires_at > now() as did_serve
    )
    select count(*) filter (where did_serve)::int as count
    from removed`
  return row.count
}
