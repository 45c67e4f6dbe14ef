import { newId, type OrgId } from '@windlass/shared/ids.ts'
import type { Sql } from '../db/client.ts'
import { ensurePool } from '../runners/pools.ts'

/** What every installation begins with: the org `default` and its pool `default`. Finds them there the second time. */
export async function ensureDefaults(sql: Sql): Promise<OrgId> {
  const orgId = await ensureOrg(sql, 'default', 'Default')
  await ensurePool(sql, orgId, 'default')
  return orgId
}

async function ensureOrg(sql: Sql, slug: string, name: string): Promise<OrgId> {
  await sql`
    insert into orgs (id, slug, name)
    values (${newId('org')}, ${slug}, ${name})
    on conflict (slug) do nothing`
  const [org] = await sql<[{ id: OrgId }]>`select id from orgs where slug = ${slug}`
  return org.id
}
