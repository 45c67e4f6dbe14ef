import assert from 'node:assert/strict'
import type { Db } from '../../db/client.ts'

/** Throws unless lists find each run by what it is: the tables that lead to rare runs are written wherever a run is made or ends. */
export async function assertInStep(db: Db, orgId: string | null = null): Promise<void> {
  const unsuccessful = await db`
    select r.id, r.status, u.status as listed_as
    from runs r
    full join runs_unsuccessful u on u.run_id = r.id and u.org_id = r.org_id
    where coalesce(r.org_id, u.org_id) = coalesce(${orgId}, r.org_id, u.org_id)
      and (
        (r.status in ('failed', 'cancelled')) is distinct from (u.run_id is not null)
        or r.status <> u.status
      )`
  assert.deepEqual([...unsuccessful], [], 'lists by status leave these out, or show too much')
  const tagged = await db`
    select *
    from (select org_id, unnest(tags) as tag, id from runs) r
    full join run_tags t on t.run_id = r.id and t.org_id = r.org_id and t.tag = r.tag
    where coalesce(r.org_id, t.org_id) = coalesce(${orgId}, r.org_id, t.org_id) and (r.id is null or t.run_id is null)`
  assert.deepEqual([...tagged], [], 'lists by tag leave these out, or show too much')
}
