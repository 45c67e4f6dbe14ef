import type { OrgId } from '@windlass/shared/ids.ts'
import type { Sql, Tx } from '../db/client.ts'
import { onlyFilters } from '../db/by-key.ts'
import type { ConnectionRow } from './row.ts'
import { connections } from './store.ts'

export async function findConnection(sql: Sql, orgId: OrgId, id: string): Promise<ConnectionRow | undefined> {
  const [row] = await sql<ConnectionRow[]>`
    ${connections(sql)}
    where c.id = ${id} and ${onlyFilters(sql, sql`c.org_id = ${orgId}`)}`
  return row
}

/** By its id or its name. */
export async function idOfConnection(sql: Sql, orgId: OrgId, ref: string): Promise<string | undefined> {
  const [row] = await sql<{ id: string }[]>`
    select id
    from connections
    where org_id = ${orgId} and (id = ${ref} or name = ${ref})
    order by id = ${ref} desc
    limit 1`
  return row?.id
}

export async function namesThere(sql: Sql, orgId: OrgId, names: readonly string[]): Promise<string[]> {
  const rows = await sql<{ name: string }[]>`
    select name from connections where org_id = ${orgId} and name = any(${[...names]})`
  return rows.map(({ name }) => name)
}

export function listConnections(
  sql: Sql,
  orgId: OrgId,
  { after = '', limit }: { after?: string | undefined; limit: number },
): Promise<ConnectionRow[]> {
  return sql<ConnectionRow[]>`
    ${connections(sql)}
    where c.org_id = ${orgId} and c.name > ${after}
    order by c.name
    limit ${limit}`
}

export type NewConnection = Omit<ConnectionRow, 'org' | 'enabled' | 'createdAt' | 'rotatedAt'>

/** False: there is one of this name. */
export async function insertConnection(tx: Tx, row: NewConnection): Promise<boolean> {
  const { id, orgId, name, kind, environment, environmentId, createdBy } = row
  const scheme = tx.json(row.scheme as unknown as Parameters<Tx['json']>[0])
  const rows = await tx`
    insert into connections (id, org_id, name, kind, scheme, environment, environment_id, created_by)
    values (${id}, ${orgId}, ${name}, ${kind}, ${scheme}, ${environment}, ${environmentId}, ${createdBy})
    on conflict (org_id, name) do nothing
    returning id`
  return rows.length > 0
}

export function lockConnection(tx: Tx, orgId: OrgId, id: string): PromiseLike<unknown> {
  return tx`select from connections where id = ${id} and org_id = ${orgId} for update`
}

/** Rejects with a unique violation where another one has the name. */
export async function changeConnection(
  tx: Tx,
  orgId: OrgId,
  { id, name, enabled }: { id: string; name: string; enabled: boolean },
): Promise<void> {
  await tx`update connections set name = ${name}, enabled = ${enabled} where id = ${id} and org_id = ${orgId}`
}

export function noteConnectionRotated(tx: Tx, orgId: OrgId, id: string): PromiseLike<unknown> {
  return tx`update connections set rotated_at = now() where id = ${id} and org_id = ${orgId}`
}

export function removeConnection(tx: Tx, orgId: OrgId, id: string): PromiseLike<unknown> {
  return tx`delete from connections where id = ${id} and org_id = ${orgId}`
}
