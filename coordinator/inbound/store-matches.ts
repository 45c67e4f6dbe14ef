import type { OrgId } from '@windlass/shared/ids.ts'
import type { Db, Sql, Tx } from '../db/client.ts'
import { unnest } from '../db/unnest.ts'
import type { DeliveryRow, MatchRow } from './row.ts'

export type NewMatchRow = MatchRow & { orgId: OrgId; deliveryId: string }

export async function insertMatches(tx: Tx, rows: readonly NewMatchRow[]): Promise<void> {
  if (rows.length === 0) return
  await tx`
    insert into delivery_matches (org_id, workflow_id, delivery_id, outcome, reason, run_id)
    select org_id, workflow_id, delivery_id, outcome, reason, run_id
    from ${unnest(tx, 't', rows, {
      orgId: 'text',
      workflowId: 'text',
      deliveryId: 'text',
      outcome: 'text',
      reason: 'text',
      runId: 'text',
    })}
    on conflict (delivery_id, workflow_id) do nothing`
}

/** Of the delivery `d`, as JSON. */
export const matchesOf = (sql: Sql) => sql`
  select coalesce(json_agg(json_build_object(
           'workflowId', m.workflow_id, 'slug', coalesce(w.slug, m.workflow_id), 'outcome', m.outcome,
           'reason', m.reason, 'runId', m.run_id
         ) order by m.workflow_id), '[]')
  from delivery_matches m
  left join workflows w on w.id = m.workflow_id
  where m.delivery_id = d.id`

/** Of each of these deliveries. */
export async function matchesById(db: Db, ids: readonly string[]): Promise<Map<string, DeliveryRow['matches']>> {
  const rows = await db<Pick<DeliveryRow, 'id' | 'matches'>[]>`
    select d.id, (${matchesOf(db)}) as matches
    from unnest(${[...ids]}::text[]) d (id)`
  return new Map(rows.map(({ id, matches }) => [id, matches]))
}

/** What a match has in an answer, without its reason. */
const BARE_BYTES = 200

/** How many bytes the matches of each of these deliveries have in an answer, in the order of the ids. */
export async function matchSizes(db: Db, ids: readonly string[]): Promise<{ bytes: number }[]> {
  const rows = await db<{ id: string; bytes: number }[]>`
    select delivery_id as id, sum(${BARE_BYTES} + coalesce(octet_length(reason), 0))::int as bytes
    from delivery_matches
    where delivery_id = any(${[...ids]})
    group by delivery_id`
  const byId = new Map(rows.map(({ id, bytes }) => [id, bytes]))
  return ids.map((id) => ({ bytes: byId.get(id) ?? 0 }))
}
