import type { OrgId } from '@windlass/shared/ids.ts'
import type { Sql } from '../db/client.ts'

export interface OrgRow {
  id: OrgId
  slug: string
  name: string
  createdAt: Date
}

/** Nothing when the slug is taken. */
export async function insert(sql: Sql, org: Omit<OrgRow, 'createdAt'>): Promise<OrgRow | undefined> {
  const [row] = await sql<OrgRow[]>`
    insert into orgs (id, slug, name)
    values (${org.id}, ${org.slug}, ${org.name})
    on conflict (slug) do nothing
    returning id, slug, name, created_at`
  return row
}

export async function find(sql: Sql, id: OrgId): Promise<OrgRow | undefined> {
  const [row] = await sql<OrgRow[]>`select id, slug, name, created_at from orgs where id = ${id}`
  return row
}

export async function findBySlug(sql: Sql, slug: string): Promise<OrgRow | undefined> {
  const [row] = await sql<OrgRow[]>`select id, slug, name, created_at from orgs where slug = ${slug}`
  return row
}

export async function list(sql: Sql): Promise<OrgRow[]> {
  return sql<OrgRow[]>`select id, slug, name, created_at from orgs order by slug`
}
