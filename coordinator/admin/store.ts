import type { OrgId } from '@windlass/shared/ids.ts'
import { type Sql } from '../db/client.ts'

/** Checksums of what the database was migrated with, in their order; none when it was never migrated. */
export async function recordedMigrations(sql: Sql): Promise<{ number: number; name: string; checksum: string }[]> {
  const [there] = await sql<[{ exists: boolean }]>`select to_regclass('windlass_migrations') is not null as exists`
  if (!there.exists) return []
  return sql<{ number: number; name: string; checksum: string }[]>`
    select number, name, checksum from windlass_migrations order by number`
}

export async function orgIds(sql: Sql): Promise<OrgId[]> {
  const rows = await sql<{ id: OrgId }[]>`select id from orgs order by id`
  return rows.map(({ id }) => id)
}
