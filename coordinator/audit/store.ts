import type { AuditId } from '@windlass/shared/ids.ts'
import type { Sql } from '../db/client.ts'
import type { Author, Change } from './row.ts'

export async function insert(sql: Sql, entry: Change & { id: AuditId; by: Author }): Promise<void> {
  const { id, by, action, target, before, after } = entry
  await sql`
    insert into audit_log
      (id, org_id, actor_kind, actor_id, actor_name, via, request_id, action, target_type, target_id, target_name, before, after)
    values
      (${id}, ${by.orgId}, ${by.kind}, ${by.id}, ${by.name}, ${by.via}, ${by.requestId}, ${action},
       ${target.type}, ${target.id}, ${target.name ?? null},
       ${before ? JSON.stringify(before) : null}::text::json, ${after ? JSON.stringify(after) : null}::text::json)`
}
