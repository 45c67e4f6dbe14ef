import type { OrgId, RunId } from '@windlass/shared/ids.ts'
import type { Tx } from '../db/client.ts'
import { unnest } from '../db/unnest.ts'

/** The next runs in the order of their ids, behind one and before the other. */
export async function nextRuns(
  tx: Tx,
  orgId: OrgId,
  { after, before, most }: { after: string; before: string; most: number },
): Promise<RunId[]> {
  const rows = await tx<{ id: RunId }[]>`
    select id
    from runs
    where (org_id, id) > (${orgId}, ${after}) and (org_id, id) < (${orgId}, ${before})
    order by org_id, id
    limit ${most}`
  return rows.map(({ id }) => id)
}

export async function noteSeen(tx: Tx, orgId: OrgId, upTo: RunId): Promise<void> {
  await tx`update retention set runs_seen = ${upTo} where org_id = ${orgId}`
}

/** A look at a run that comes, or came, due. */
export interface LateRun {
  runId: RunId
  lookAt: Date
}

/** Those whose look is due, the longest due first. */
export async function dueLate(tx: Tx, orgId: OrgId, most: number): Promise<LateRun[]> {
  return tx<LateRun[]>`
    select run_id, look_at
    from retention_late
    where (org_id, look_at) > (${orgId}, '-infinity') and (org_id, look_at) < (${orgId}, now())
    order by org_id, look_at
    limit ${most}`
}

export async function removeLate(tx: Tx, orgId: OrgId, looks: readonly LateRun[]): Promise<void> {
  await tx`
    delete from retention_late l
    using ${unnest(tx, 'd', looks, {
      runId: 'text',
      lookAt: ['float8', ({ lookAt }) => lookAt.getTime()],
    })}
    where l.org_id = ${orgId} and l.look_at = to_timestamp(d.look_at / 1000) and l.run_id = d.run_id`
}

/** They are looked at again in a day. Whole seconds, so that each look is found again by its time. */
export async function addLate(tx: Tx, orgId: OrgId, runIds: readonly RunId[]): Promise<void> {
  if (runIds.length === 0) return
  await tx`
    insert into retention_late (org_id, look_at, run_id)
    select ${orgId}, date_trunc('second', now()) + interval '1 day', unnest(${[...runIds]}::text[])`
}
