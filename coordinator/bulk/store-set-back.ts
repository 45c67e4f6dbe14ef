import type { OrgId } from '@windlass/shared/ids.ts'
import { CORRECTION_MS } from '../db/clock-difference.ts'
import type { Db, Sql, Tx } from '../db/client.ts'
import { DEADLINE_MS } from './store.ts'
import { AGAIN_MS } from './turns.ts'

const ms = (sql: Sql, count: number) => sql`${count} * interval '1 millisecond'`
/** Later than any is put off. */
const isBeyond = (sql: Sql, column: string, most: number) =>
  sql`${sql(column)} > now() + ${ms(sql, most + CORRECTION_MS)}`
const isAhead = (sql: Sql) => sql`
  finished_at is null and (${isBeyond(sql, 'turn_at', AGAIN_MS)} or ${isBeyond(sql, 'deadline_at', DEADLINE_MS)})`

/** Orgs with jobs that have their next turn, or their deadline, later than there is a reason for. */
export async function orgsAhead(db: Db): Promise<OrgId[]> {
  const rows = await db<{ orgId: OrgId }[]>`select distinct org_id from bulk_jobs where ${isAhead(db)}`
  return rows.map(({ orgId }) => orgId)
}

/** Those that others have locked are passed over. */
export async function putBack(tx: Tx, orgId: OrgId): Promise<{ moved: number; left: number }> {
  const [pass] = await tx<[{ moved: number; left: number }]>`
    with ahead as materialized (
      select id from bulk_jobs where org_id = ${orgId} and ${isAhead(tx)}
    ),
    free as materialized (
      select id
      from bulk_jobs
      where id in (select id from ahead)
      order by id
      for update skip locked
    ),
    moved as (
      update bulk_jobs
      set turn_at = least(turn_at, now()), deadline_at = least(deadline_at, now() + ${ms(tx, DEADLINE_MS)})
      where id in (select id from free) and ${isAhead(tx)}
      returning id
    )
    select (select count(*) from moved)::int as moved,
           (select count(*) from ahead)::int - (select count(*) from free)::int as left`
  return pass
}
