import type { OrgId } from '@windlass/shared/ids.ts'
import type { Db, Tx } from '../../db/client.ts'
import { unnest } from '../../db/unnest.ts'
import { workflowOf } from '../rules/groups.ts'

/** Notes groups in which there may be room for more. Answers whose they are. */
export async function addRest(tx: Tx, groups: readonly string[]): Promise<OrgId[]> {
  const rows = await tx<{ orgId: OrgId }[]>`
    with rest as materialized (
      select w.org_id, g.group_key
      from ${unnest(tx, 'g', groups, { groupKey: ['text', (key) => key], workflow: ['text', workflowOf] })}
      join workflows w on w.id = g.workflow
    ),
    noted as (
      insert into concurrency_rest (org_id, group_key)
      select org_id, group_key from rest
      order by org_id, group_key
      on conflict (org_id, group_key) do nothing
    )
    select distinct org_id from rest`
  return rows.map(({ orgId }) => orgId)
}

export async function nextRest(db: Db, orgId: OrgId, most: number): Promise<string[]> {
  const rows = await db<{ groupKey: string }[]>`
    select group_key from concurrency_rest where org_id = ${orgId} order by group_key limit ${most}`
  return rows.map(({ groupKey }) => groupKey)
}

export async function removeRest(tx: Tx, orgId: OrgId, groups: readonly string[]): Promise<void> {
  await tx`delete from concurrency_rest where org_id = ${orgId} and group_key = any(${[...groups]})`
}
