import type { OrgId, RunId } from '@windlass/shared/ids.ts'
import { isFinal, RUN_STATUSES, type RunStatus } from '@windlass/shared/model/run.ts'
import { onlyFilters } from '../../db/by-key.ts'
import type { Db, Sql, Tx } from '../../db/client.ts'
import { unnest } from '../../db/unnest.ts'

const UNFINISHED = RUN_STATUSES.filter((status) => !isFinal(status))

export interface Erasable {
  id: RunId
  status: RunStatus
  cursor: number
  entries: number
  finishedAt: Date | null
  deletedAt: Date | null
}

/** In the order of their ids, as whoever locks several does. */
export async function lockForErasure(tx: Tx, orgId: OrgId, runIds: readonly RunId[]): Promise<Erasable[]> {
  return tx<Erasable[]>`
    select id, status, cursor, entries, finished_at, deleted_at
    from runs
    where id = any(${[...runIds]}) and ${onlyFilters(tx, tx`org_id = ${orgId}`)}
    order by id
    for update`
}

/** Those of these runs below which something has not ended, at any depth, each with one such run. */
export async function unfinishedBelow(tx: Tx, runIds: readonly RunId[]): Promise<Map<RunId, RunId>> {
  const rows = await tx<{ root: RunId; id: RunId }[]>`
    with recursive below as (
      select parent_run_id as root, id, status from runs where parent_run_id = any(${[...runIds]})
      union all
      select b.root, r.id, r.status
      from below b
      join runs r on r.parent_run_id = b.id
    )
    select distinct on (root) root, id
    from below
    where status = any(${UNFINISHED})`
  return new Map(rows.map(({ root, id }) => [root, id]))
}

/** Leaves of runs what others point to. Their logs and journals, which may be long, are left to `erasePiece`. */
export async function entomb(tx: Tx, orgId: OrgId, runIds: readonly RunId[], by: string): Promise<void> {
  const ids = [...runIds]
  await tx`
    update runs
    set deleted_at = now(), deleted_by = ${by}, input = 'null', output = null, error = null, blocked = null,
        tags = '{}', cancel_reason = null
    where id = any(${ids}) and ${onlyFilters(tx, tx`org_id = ${orgId}`)}`
  await tx`insert into runs_deleted (org_id, run_id) select ${orgId}, unnest(${ids}::text[])`
  await tx`delete from runs_unsuccessful where org_id = ${orgId} and run_id = any(${ids})`
  await tx`delete from inputs where run_id = any(${ids}) and ${onlyFilters(tx, tx`org_id = ${orgId}`)}`
  await tx`delete from run_losses where run_id = any(${ids})`
}

/** The key of these rows begins with the tag, so the tags are told. */
export async function untag(tx: Tx, orgId: OrgId, runIds: readonly RunId[]): Promise<void> {
  await tx`
    delete from run_tags t
    using (select id, unnest(tags) as tag from runs where id = any(${[...runIds]})) of_run
    where t.org_id = ${orgId} and t.tag = of_run.tag and t.run_id = of_run.id`
}

/** What is still to be taken away of a deleted run. Numbers of its log and its journal: behind `done`, up to `most`. */
export interface Erasure {
  orgId: OrgId
  runId: RunId
  most: number
  done: number
}

export async function addErasures(tx: Sql, erasures: readonly Erasure[]): Promise<void> {
  await tx`
    insert into run_erasures (org_id, run_id, most, done)
    select org_id, run_id, most, done
    from ${unnest(tx, 't', erasures, { orgId: 'text', runId: 'text', most: 'int', done: 'int' })}
    on conflict (org_id, run_id) do nothing`
}

export function nextErasures(db: Db, orgId: OrgId, most: number): Promise<Erasure[]> {
  return db<Erasure[]>`
    select org_id, run_id, most, done from run_erasures where org_id = ${orgId} order by run_id limit ${most}`
}

/** Deletes the next stretch of log and journal: both count from 1. */
export async function erasePiece(db: Db, { orgId, runId, done }: Erasure, upTo: number): Promise<void> {
  await db`delete from run_events where run_id = ${runId} and cursor > ${done} and cursor <= ${upTo}`
  await db`delete from journal where run_id = ${runId} and n > ${done} and n <= ${upTo}`
  await db`update run_erasures set done = ${upTo} where org_id = ${orgId} and run_id = ${runId}`
}

export async function endErasure(db: Db, { orgId, runId }: Erasure): Promise<void> {
  await eraseCopies(db, orgId, runId)
  await db`delete from run_erasures where org_id = ${orgId} and run_id = ${runId}`
}

/** Copies of its lifecycle events, for those who follow the org. */
export async function eraseCopies(db: Db, orgId: OrgId, runId: RunId): Promise<void> {
  await db`delete from org_events where org_id = ${orgId} and run_id = ${runId}`
}
