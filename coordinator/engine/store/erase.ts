import type { OrgId, RunId } from '@windlass/shared/ids.ts'
import { isFinal, RUN_STATUSES } from '@windlass/shared/model/run.ts'
import { onlyFilters } from '../../db/by-key.ts'
import type { Db, Sql, Tx } from '../../db/client.ts'
import type { RunStatus } from '@windlass/shared/model/run.ts'

const UNFINISHED = RUN_STATUSES.filter((status) => !isFinal(status))

export interface Erasable {
  status: RunStatus
  cursor: number
  entries: number
  deletedAt: Date | null
}

export async function lockForErasure(tx: Tx, orgId: OrgId, runId: RunId): Promise<Erasable | undefined> {
  const [row] = await tx<Erasable[]>`
    select status, cursor, entries, deleted_at
    from runs
    where id = ${runId} and ${onlyFilters(tx, tx`org_id = ${orgId}`)}
    for update`
  return row
}

/** One that has not ended, at any depth below the run. */
export async function unfinishedDescendant(tx: Tx, runId: RunId): Promise<RunId | undefined> {
  const [row] = await tx<{ id: RunId }[]>`
    with recursive below as (
      select id, status from runs where parent_run_id = ${runId}
      union all
      select r.id, r.status
      from below
      join runs r on r.parent_run_id = below.id
    )
    select id
    from below
    where status = any(${UNFINISHED})
    limit 1`
  return row?.id
}

/** Leaves of a run what others point to. Its log and its journal, which may be long, are left to `erasePiece`. */
export async function entomb(tx: Tx, orgId: OrgId, runId: RunId, by: string): Promise<void> {
  await tx`
    update runs
    set deleted_at = now(), deleted_by = ${by}, input = 'null', output = null, error = null, blocked = null,
        tags = '{}', cancel_reason = null
    where id = ${runId} and org_id = ${orgId}`
  await tx`insert into runs_deleted (org_id, run_id) values (${orgId}, ${runId})`
  await tx`delete from runs_unsuccessful where org_id = ${orgId} and run_id = ${runId}`
  await tx`delete from inputs where run_id = ${runId} and ${onlyFilters(tx, tx`org_id = ${orgId}`)}`
  await tx`delete from run_losses where run_id = ${runId}`
}

/** The key of these rows begins with the tag, so the tags are told. */
export async function untag(tx: Tx, orgId: OrgId, runId: RunId): Promise<void> {
  await tx`
    delete from run_tags
    where org_id = ${orgId} and run_id = ${runId}
      and tag = any(array(select unnest(tags) from runs where id = ${runId}))`
}

/** What is still to be taken away of a deleted run. Numbers of its log and its journal: behind `done`, up to `most`. */
export interface Erasure {
  orgId: OrgId
  runId: RunId
  most: number
  done: number
}

export async function addErasure(tx: Sql, { orgId, runId, most, done }: Erasure): Promise<void> {
  await tx`
    insert into run_erasures (org_id, run_id, most, done)
    values (${orgId}, ${runId}, ${most}, ${done})
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
