import type { OrgId, RunId } from '@windlass/shared/ids.ts'
import { isFinal, RUN_STATUSES, type RunStatus } from '@windlass/shared/model/run.ts'
import { onlyFilters } from '../../db/by-key.ts'
import type { Db, Sql, Tx } from '../../db/client.ts'
import type { Fragment } from '../../db/newest.ts'
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

/** As `lockForErasure`, of runs that others may go on with: it waits for nobody. */
export async function findErasable(sql: Sql, orgId: OrgId, runIds: readonly RunId[]): Promise<Erasable[]> {
  return sql<Erasable[]>`
    select id, status, cursor, entries, finished_at, deleted_at
    from runs
    where id = any(${[...runIds]}) and ${onlyFilters(sql, sql`org_id = ${orgId}`)}`
}

/**
 * Runs below these, each once, as far as it has to be looked: below one that has not ended it need not, and below a
 * deleted one all has ended, as else it were not deleted. Both stay so.
 */
function below(sql: Sql, runIds: readonly RunId[]): Fragment {
  return sql`
    with recursive below as (
      select id, parent_run_id, status
      from runs
      where parent_run_id = any(${[...runIds]}) and deleted_at is null
      union
      select r.id, r.parent_run_id, r.status
      from below b
      join runs r on r.parent_run_id = b.id
      where b.status <> all(${UNFINISHED}) and r.deleted_at is null
    )`
}

/** One that has not ended, at any depth below the run. */
export async function unfinishedBelow(sql: Sql, runId: RunId): Promise<RunId | undefined> {
  const [row] = await sql<{ id: RunId }[]>`
    ${below(sql, [runId])}
    select id from below where status = any(${UNFINISHED}) limit 1`
  return row?.id
}

export interface Below {
  id: RunId
  parentRunId: RunId
  isFinal: boolean
}

/** At most so many of the runs below these. */
export async function someBelow(sql: Sql, runIds: readonly RunId[], most: number): Promise<Below[]> {
  return sql<Below[]>`
    ${below(sql, runIds)}
    select id, parent_run_id, status <> all(${UNFINISHED}) as is_final from below limit ${most}`
}

/** Those of these runs that have called one which is not deleted. */
export async function withChildren(sql: Sql, runIds: readonly RunId[]): Promise<Set<RunId>> {
  const rows = await sql<{ id: RunId }[]>`
    select p.id
    from unnest(${[...runIds]}::text[]) as p (id)
    cross join lateral (
      select 1 from runs r where r.parent_run_id = p.id and r.deleted_at is null limit 1
    ) child`
  return new Set(rows.map(({ id }) => id))
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
