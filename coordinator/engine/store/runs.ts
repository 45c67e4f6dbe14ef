import type { OrgId, RunId, RunnerId, VersionId } from '@windlass/shared/ids.ts'
import type { Db, Sql, Tx } from '../../db/client.ts'
import { foundBy, onlyFilters } from '../../db/by-key.ts'
import { unnest } from '../../db/unnest.ts'
import type { Moving } from '../rules/run.ts'

/**
 * Takes runs out of the queue, whose rows the caller has locked: before that a completion may still put one there. A
 * claim locks the queue's row before the run's, so nobody waits here for a row that is locked: its claim takes it away
 * and finds the run changed.
 */
export async function leaveQueue(tx: Tx, ids: readonly RunId[]): Promise<void> {
  if (ids.length === 0) return
  await tx`
    delete from run_queue
    where run_id = any(
      array(select run_id from run_queue where run_id = any(${[...ids]}) order by run_id for update skip locked)
    )`
}

/** What a run has called: all of it, or what its entries up to one have called. */
export interface Descent {
  orgId: OrgId
  runId: RunId
  upTo?: number | undefined
}

/** Runs below this one, at any depth, that have not ended and are not being cancelled. */
export async function descendantsToCancel(db: Db, { orgId, runId, upTo }: Descent, limit: number): Promise<RunId[]> {
  const rows = await db<{ id: RunId }[]>`
    with recursive below as (
      select id, status
      from runs
      where parent_run_id = ${runId} and parent_entry <= ${upTo ?? 2 ** 31 - 1}
      and ${onlyFilters(db, db`org_id = ${orgId}`)}
      union all
      select r.id, r.status
      from below
      join runs r on r.parent_run_id = below.id
    )
    select id
    from below
    where status not in ('completed', 'failed', 'cancelled', 'cancelling')
    order by id
    limit ${limit}`
  return rows.map((row) => row.id)
}

/** The number of entries in the journals of these runs, the forgotten ones left out. */
export async function entriesOf(sql: Sql, ids: readonly RunId[]): Promise<Map<RunId, number>> {
  const rows = await sql<{ id: RunId; entries: number }[]>`
    select id, entries - forgotten_entries as entries from runs where id = any(${[...ids]})`
  return new Map(rows.map(({ id, entries }) => [id, entries]))
}

export async function parentsOf(sql: Sql, ids: readonly RunId[]): Promise<RunId[]> {
  const rows = await sql<{ parent: RunId }[]>`
    select parent_run_id as parent from runs where id = any(${[...ids]}) and parent_run_id is not null`
  return rows.map(({ parent }) => parent)
}

export async function noteCancels(tx: Tx, runs: readonly { id: RunId; reason: string }[]): Promise<void> {
  if (runs.length === 0) return
  await tx`
    update runs r
    set
      cancel_requested_at = coalesce(r.cancel_requested_at, now()),
      cancel_reason = coalesce(r.cancel_reason, t.reason)
    from ${unnest(tx, 't', runs, { id: 'text', reason: 'text' })}
    where r.id = t.id`
}

export type LockedRow = Pick<
  Moving,
  | 'id'
  | 'orgId'
  | 'poolId'
  | 'versionId'
  | 'runnerId'
  | 'epoch'
  | 'priority'
  | 'createdAt'
  | 'startedAt'
  | 'timedOutAt'
  | 'isLedBack'
  | 'environment'
  | 'parentRunId'
  | 'parentEntry'
  | 'rootRunId'
  | 'depth'
  | 'concurrencyGroup'
  | 'needs'
  | 'status'
  | 'attempt'
  | 'cursor'
  | 'seq'
  | 'place'
  | 'entries'
  | 'forgottenEntries'
  | 'journalChars'
  | 'crashes'
  | 'fences'
  | 'thrown'
  | 'replays'
  | 'cutReplays'
  | 'activeMs'
> & { blocked: string | null }

const lockable = (sql: Sql) => sql`
  r.id, r.org_id, r.pool_id, r.version_id, r.runner_id, r.epoch, r.priority, r.created_at, r.started_at, r.environment,
  r.parent_run_id, r.parent_entry, r.root_run_id, r.depth, r.concurrency_group, r.needs, r.status, r.attempt, r.cursor,
  r.seq, r.place, r.entries, r.forgotten_entries,
  r.journal_chars::float8 as journal_chars,
  r.crashes, r.fences, r.thrown,
  r.replays, r.cut_replays, r.active_ms::float8 as active_ms, r.timed_out_at, r.blocked,
  coalesce(r.suspended_at < r.claimed_at, false) as is_led_back`

const forUpdate = (tx: Tx, skipsLocked: boolean) => tx`for update of r ${skipsLocked ? tx`skip locked` : tx``}`

/** In the order of their ids, so that two who want the same runs do not wait for each other in a circle. */
export function lock(tx: Tx, ids: string[], skipsLocked = false): Promise<LockedRow[]> {
  return tx<LockedRow[]>`
    select ${lockable(tx)}
    from runs r
    where r.id = any(${ids})
    order by r.id
    ${forUpdate(tx, skipsLocked)}`
}

/** With the parents of those that may end. */
export function lockWithParents(tx: Tx, ids: string[], ending: string[], skipsLocked = false): Promise<LockedRow[]> {
  return tx<LockedRow[]>`
    with wanted as (
      select unnest(${ids}::text[]) as id
      union
      select parent_run_id
      from runs
      where id = any(${ending}) and ${onlyFilters(tx, tx`parent_run_id is not null`)}
    )
    select ${lockable(tx)}
    from wanted
    join runs r on r.id = wanted.id
    order by r.id
    ${forUpdate(tx, skipsLocked)}`
}

/** What these runners have, with the parents of those that may end. */
export function lockHeld(
  tx: Tx,
  { runnerIds, ids, ending }: { runnerIds: readonly RunnerId[]; ids: string[]; ending: string[] },
): Promise<LockedRow[]> {
  const isHeld = onlyFilters(tx, tx`runner_id = any(${[...runnerIds]})`)
  return tx<LockedRow[]>`
    with wanted as (
      select id
      from runs
      where id = any(${ids}) and ${isHeld}
      union
      select parent_run_id
      from runs
      where id = any(${ending}) and ${isHeld} and ${onlyFilters(tx, tx`parent_run_id is not null`)}
    )
    select ${lockable(tx)}
    from wanted
    join runs r on r.id = wanted.id
    order by r.id
    for update of r`
}

/** Where only events and entries of the journal were added. */
export function advance(tx: Tx, runs: Moving[]): PromiseLike<unknown> {
  return tx`
    update runs
    set cursor = m.cursor, seq = m.seq, entries = m.entries, journal_chars = m.journal_chars
    from ${unnest(tx, 'm', runs, { id: 'text', cursor: 'int', seq: 'int', entries: 'int', journalChars: 'bigint' })}
    where runs.id = m.id`
}

export function update(tx: Tx, runs: Moving[]): PromiseLike<unknown> {
  // Flags travel as 0 and 1: postgres.js takes an array of booleans for one boolean.
  return tx`
    update runs
    set
      status       = m.status,
      attempt      = m.attempt,
      cursor       = m.cursor,
      seq          = m.seq,
      place        = m.place,
      entries      = m.entries,
      forgotten_entries = m.forgotten_entries,
      journal_chars = m.journal_chars,
      crashes      = m.crashes,
      fences       = m.fences,
      thrown       = m.thrown,
      lost_attempts = case
        when m.lost_attempt is null then runs.lost_attempts
        else runs.lost_attempts || m.lost_attempt
      end,
      replays      = m.replays,
      cut_replays  = m.cut_replays,
      active_ms    = m.active_ms,
      blocked      = m.blocked,
      output       = coalesce(m.output, runs.output),
      error        = coalesce(m.error, runs.error),
      compute_ms   = runs.compute_ms + m.compute_ms,
      started_at   = case when m.started = 1 then coalesce(runs.started_at, now()) else runs.started_at end,
      queued_at    = case when m.requeued = 1 then now() else runs.queued_at end,
      suspended_at = case when m.suspended = 1 then now() else runs.suspended_at end,
      isolation    = coalesce(m.isolation, runs.isolation),
      timed_out_at = case when m.timed_out = 1 then coalesce(runs.timed_out_at, now()) end,
      finished_at  = case
        when m.status in ('completed', 'failed', 'cancelled') then coalesce(runs.finished_at, now())
      end
    from ${unnest(tx, 'm', runs, {
      id: 'text',
      status: 'text',
      attempt: 'int',
      cursor: 'int',
      seq: 'int',
      place: 'text',
      entries: 'int',
      crashes: 'int',
      thrown: 'int',
      lostAttempt: 'int',
      replays: 'int',
      activeMs: ['bigint', (r) => Math.round(r.activeMs)],
      blocked: ['text', (r) => (r.blocked ? JSON.stringify(r.blocked) : null)],
      output: 'text',
      error: ['text', (r) => (r.error ? JSON.stringify(r.error) : null)],
      computeMs: ['bigint', (r) => Math.round(r.computeMs)],
      started: ['int', (r) => Number(r.started)],
      requeued: ['int', (r) => Number(r.requeued !== null)],
      suspended: ['int', (r) => Number(r.suspended)],
      timedOut: ['int', (r) => Number(r.timedOut)],
      journalChars: 'bigint',
      isolation: 'text',
      fences: 'int',
      cutReplays: 'int',
      forgottenEntries: 'int',
    })}
    where runs.id = m.id`
}

/** The processes of these runs are gone. In the order of their ids, like all who lock placements. */
export function release(tx: Tx, runs: Moving[]): PromiseLike<unknown> {
  return tx`
    delete from placements p
    using unnest(${runs.map((run) => run.id).sort()}::text[]) as gone (run_id)
    where ${foundBy(tx, tx`p.run_id`, tx`gone.run_id`)}`
}

/** So that a list finds them among those that are completed. */
export function noteUnsuccessful(tx: Tx, runs: Moving[]): PromiseLike<unknown> {
  return tx`
    insert into runs_unsuccessful (org_id, run_id, status)
    select *
    from ${unnest(tx, 't', runs, { orgId: 'text', id: 'text', status: 'text' })}
    on conflict (org_id, run_id) do nothing`
}

export function enterQueue(tx: Tx, runs: Moving[]): PromiseLike<unknown> {
  return tx`
    insert into run_queue (run_id, pool_id, priority, needs)
    select *
    from ${unnest(tx, 't', runs, { id: 'text', poolId: 'text', priority: 'int', needs: 'text' })}
    on conflict (run_id) do nothing`
}

/**
 * Runs at rest for which something has been completed in the meantime wait for a runner again. Looked up and not left
 * to the conflict: an insert would wait for the claim that is just taking the row away, and that claim waits for the
 * lock of the run.
 */
export function enterAsResume(tx: Tx, runs: Moving[]): PromiseLike<{ runId: RunId }[]> {
  return tx<{ runId: RunId }[]>`
    insert into run_queue (run_id, pool_id, priority, is_resume, needs)
    select m.id, m.pool_id, m.priority, true, m.needs
    from ${unnest(tx, 'm', runs, { id: 'text', poolId: 'text', priority: 'int', attempt: 'int', needs: 'text' })}
    where exists (
      select 1
      from journal j
      where j.run_id = m.id and j.attempt = m.attempt and j.completion is not null and j.delivered is null
      -- Asked for each run, or the planner may begin with all that is undelivered anywhere.
      offset 0
    )
    and not exists (select 1 from run_queue q where q.run_id = m.id offset 0)
    -- A replay that died waits before it is tried again.
    and not exists (select 1 from timers t where t.run_id = m.id and t.kind = 'enqueue' offset 0)
    on conflict (run_id) do nothing
    returning run_id`
}

/** The versions that these runs execute. */
export async function versionsOf(db: Db, runIds: readonly string[]): Promise<VersionId[]> {
  const rows = await db<{ versionId: VersionId }[]>`select distinct version_id from runs where id = any(${[...runIds]})`
  return rows.map((row) => row.versionId)
}
