import type { OrgId } from '@windlass/shared/ids.ts'
import type { Db, Sql, Tx } from '../db/client.ts'

/** What an org has said; null: nothing. */
export interface RetentionRow {
  runsDays: number | null
  deliveriesDays: number | null
  /** Nothing is deleted before. */
  actsAt: Date
}

export interface RetentionOfOrg extends RetentionRow {
  orgId: OrgId
}

export async function find(sql: Sql, orgId: OrgId): Promise<RetentionRow | undefined> {
  const [row] = await sql<RetentionRow[]>`
    select runs_days, deliveries_days, acts_at from retention where org_id = ${orgId}`
  return row
}

/** Its row is there, and nobody else changes it until the transaction has ended. */
export async function lock(tx: Tx, orgId: OrgId): Promise<RetentionRow & { runsSeen: string }> {
  await tx`insert into retention (org_id) values (${orgId}) on conflict (org_id) do nothing`
  const [row] = await tx<(RetentionRow & { runsSeen: string })[]>`
    select runs_days, deliveries_days, acts_at, runs_seen from retention where org_id = ${orgId} for update`
  return row!
}

type Said = Pick<RetentionRow, 'runsDays' | 'deliveriesDays'>

export async function write(tx: Tx, orgId: OrgId, { runsDays, deliveriesDays }: Said, inMs: number): Promise<void> {
  await tx`
    update retention
    set runs_days = ${runsDays}, deliveries_days = ${deliveriesDays},
        acts_at = now() + ${inMs} * interval '1 millisecond'
    where org_id = ${orgId}`
}

/** All orgs, with what those have said that have. */
export function listAll(db: Db): Promise<RetentionOfOrg[]> {
  return db<RetentionOfOrg[]>`
    select o.id as org_id, r.runs_days, r.deliveries_days, coalesce(r.acts_at, o.created_at) as acts_at
    from orgs o
    left join retention r on r.org_id = o.id`
}
