import type { OrgId, PoolId, RunId, RunnerId } from '@windlass/shared/ids.ts'
import type { IntakeState, OnDeadline } from '@windlass/shared/model/runner.ts'
import type { Instance } from '@windlass/shared/wire/agent.ts'
import type { Db, Sql, Tx } from '../db/client.ts'
import type { Fragment } from '../db/newest.ts'
import { cordonsInARow } from './store-cordons.ts'

/** As it is stored: that a drain is over is computed from what the runner still has. */
export type StoredState = Exclude<IntakeState, 'drained'>
export type ByKind = 'caller' | 'agent' | 'system'

export interface IntakeRow {
  runnerId: RunnerId
  orgId: OrgId
  poolId: PoolId
  name: string
  state: StoredState
  epoch: number
  byKind: ByKind | null
  reason: string
  deadlineAt: Date | null
  /** What was asked for, from its beginning on. */
  deadlineMs: number | null
  deadlineIsOver: boolean
  onDeadline: OnDeadline | null
  isQuarantined: boolean
}

/**
 * The row under lock. Claims hold it in share mode until they commit: whoever has it sees all that they gave out. Read in a statement
 * of its own: the one that waited for the lock would not see that the runner was forgotten meanwhile.
 */
export async function lockIntake(tx: Tx, runnerId: string): Promise<IntakeRow | undefined> {
  await tx`select from runner_intake where runner_id = ${runnerId} for update`
  const [row] = await tx<IntakeRow[]>`
    select i.runner_id, r.org_id, r.pool_id, r.name, i.state, i.epoch, i.by_kind, i.reason, i.deadline_at, i.on_deadline,
           round(extract(epoch from i.deadline_at - i.since) * 1000)::float8 as deadline_ms,
           (i.deadline_at <= now()) is true as deadline_is_over,
           (i.quarantined_until > now()) is true as is_quarantined
    from runner_intake i
    join runners r on r.id = i.runner_id
    where i.runner_id = ${runnerId} and r.deregistered_at is null`
  return row
}

export interface IntakeChange {
  state: StoredState
  byKind: ByKind
  byName: string
  reason: string
  deadlineMs?: number | undefined
  onDeadline?: OnDeadline | undefined
}

export interface Changed {
  epoch: number
  deadlineAt: Date | null
}

/** Answers the new epoch. A person who opens a runner forgives it what went wrong there; that its agent is back says nothing of that. */
export async function writeIntake(tx: Tx, runnerId: RunnerId, change: IntakeChange): Promise<Changed> {
  const { state, byKind, byName, reason, deadlineMs = null, onDeadline = null } = change
  const forgives = state === 'open' && byKind === 'caller'
  const isOurCordon = state === 'cordoned' && byKind === 'system'
  const [row] = await tx<[Changed]>`
    update runner_intake
    set
      state             = ${state},
      epoch             = epoch + 1,
      since             = now(),
      by_kind           = ${byKind},
      by_name           = ${byName},
      reason            = ${reason},
      deadline_at       = now() + ${deadlineMs}::float8 * interval '1 millisecond',
      on_deadline       = ${onDeadline},
      deadline_done_at  = null,
      unaccepted        = 0,
      cordons           = case
                            when ${isOurCordon} then ${cordonsInARow(tx)}
                            when ${byKind === 'system'} then cordons
                            else 0
                          end,
      failures          = case when ${forgives} then '{}' else failures end,
      quarantined_at    = case when ${forgives} then null else quarantined_at end,
      quarantined_until = case when ${forgives} then null else quarantined_until end,
      quarantine_reason = case when ${forgives} then null else quarantine_reason end
    where runner_id = ${runnerId}
    returning epoch, deadline_at`
  return row
}

export type Start = Pick<Instance, 'id' | 'boot' | 'process'>

/**
 * Closed only until the agent says hello: by the coordinator, or by an agent that has been started again since. Nobody
 * but the start that the database was last reconciled with can have closed it.
 */
export async function isLiftable(db: Sql, runnerId: string, start: Start | undefined): Promise<boolean> {
  const { id = null, boot = null, process = null } = start ?? {}
  const rows = await db`
    select
    from runner_intake i
    join runners r on r.id = i.runner_id
    where i.runner_id = ${runnerId}
      and (
        i.state = 'cordoned' and i.by_kind = 'system'
        or i.state in ('cordoned', 'draining') and i.by_kind = 'agent'
          and r.instance = ${id} and r.instance_process is not distinct from ${process}
          and (r.reconciled_instance, r.reconciled_boot, r.reconciled_process)
                is distinct from (${id}::text, ${boot}::text, ${process}::text)
      )`
  return rows.length > 0
}

export interface NoticeRow {
  runnerId: RunnerId
  state: IntakeState
  epoch: number
  reason: string
  deadlineAt: Date | null
}

export function notices(db: Db, runnerIds: readonly string[]): Promise<NoticeRow[]> {
  return db<NoticeRow[]>`
    select i.runner_id, i.epoch, i.reason, i.deadline_at,
           case
             when i.state = 'draining' and not exists (select from placements p where p.runner_id = i.runner_id) then 'drained'
             else i.state
           end as state
    from runner_intake i
    where i.runner_id = any(${[...runnerIds]})`
}

/** Counts one more for each of these runners. Answers those that have now had too many in a row. */
export async function countUnaccepted(db: Db, runnerIds: readonly string[], most: number): Promise<RunnerId[]> {
  const rows = await db<{ runnerId: RunnerId }[]>`
    with locked as materialized (
      select runner_id
      from runner_intake
      where runner_id = any(${[...runnerIds]})
      order by runner_id
      for update
    ),
    counted as (
      update runner_intake i
      set unaccepted = unaccepted + 1
      from locked
      where i.runner_id = locked.runner_id
      returning i.runner_id, i.unaccepted, i.state
    )
    select runner_id from counted where unaccepted >= ${most} and state = 'open'`
  return rows.map((row) => row.runnerId)
}

/** Nearly always there is nothing to write, and then nothing is locked. */
export function forgetUnaccepted(db: Db, runnerIds: readonly string[]): PromiseLike<unknown> {
  return db`
    with locked as materialized (
      select runner_id
      from runner_intake
      where runner_id = any(${[...runnerIds]}) and unaccepted > 0
      order by runner_id
      for update
    )
    update runner_intake i set unaccepted = 0 from locked where i.runner_id = locked.runner_id`
}

/** Notes that preparing a run failed there. Answers how often it did within the time. */
export async function countFailure(tx: Tx, runnerId: RunnerId, withinMs: number): Promise<number> {
  const [row] = await tx<[{ count: number }]>`
    update runner_intake
    set failures = now() || array(
      select at from unnest(failures) at where at > now() - ${withinMs} * interval '1 millisecond'
    )
    where runner_id = ${runnerId}
    returning cardinality(failures) as count`
  return row.count
}

export function writeQuarantine(tx: Tx, runnerId: RunnerId, { reason, ms }: { reason: string; ms: number }) {
  return tx<[{ until: Date }]>`
    update runner_intake
    set
      failures          = '{}',
      quarantined_at    = now(),
      quarantined_until = now() + ${ms} * interval '1 millisecond',
      quarantine_reason = ${reason}
    where runner_id = ${runnerId}
    returning quarantined_until as until`
}

/** What it was offered and has not taken. */
export function offersOf(db: Db, runnerId: string): Promise<{ runId: RunId; epoch: number }[]> {
  return db<{ runId: RunId; epoch: number }[]>`
    select run_id, epoch
    from placements
    where runner_id = ${runnerId} and accepted_at is null
    order by run_id`
}

/** One that is not there has nothing to say either. */
export async function isRevoked(db: Db, runnerId: string): Promise<boolean> {
  const rows = await db`select from runner_intake where runner_id = ${runnerId} and state <> 'revoked'`
  return rows.length === 0
}

export async function markDeregistered(tx: Tx, runnerId: RunnerId): Promise<void> {
  await tx`update runners set deregistered_at = now() where id = ${runnerId}`
}

export interface DueDrain {
  runnerId: RunnerId
  orgId: OrgId
  name: string
  reason: string
}

/** What executes on the runner `i` and nobody has asked to stop; what is offered may yet begin. */
const executing = (sql: Sql) => sql`
  select r.id
  from placements p
  join runs r on r.id = p.run_id
  where p.runner_id = i.runner_id and p.accepted_at is not null and r.place is distinct from 'parked'
    and r.status not in ('cancelling', 'cancelled', 'completed', 'failed')`

/** An agent that comes and goes does not put the end of its drain off for longer. */
const MOST_DOUBT = '3 minutes'

/**
 * Drains whose time is up, and that are to end what executes: the first of each org, then the second of each. While an
 * agent was not heard, what it executes may have ended: `isInDoubt` says it of the runner `r`.
 */
export function dueDrains(db: Db, isInDoubt: Fragment): Promise<DueDrain[]> {
  return db<DueDrain[]>`
    select i.runner_id, r.org_id, r.name, i.reason
    from runner_intake i
    join runners r on r.id = i.runner_id
    where i.deadline_at <= now() and i.state = 'draining' and i.on_deadline = 'cancel' and exists (${executing(db)})
      and (not ${isInDoubt} or i.deadline_at < now() - ${MOST_DOUBT}::text::interval)
    order by row_number() over (partition by r.org_id order by i.runner_id), i.runner_id
    limit 100`
}

/** `isFirst` for the one who comes first, of all coordinators; undefined where there is no such drain any more. */
export async function takeDeadline(tx: Tx, runnerId: RunnerId): Promise<{ isFirst: boolean } | undefined> {
  const [row] = await tx<{ isFirst: boolean }[]>`
    with before as (
      select runner_id, deadline_done_at is null as is_first
      from runner_intake
      where runner_id = ${runnerId} and deadline_at <= now() and state = 'draining' and on_deadline = 'cancel'
      for update
    )
    update runner_intake i
    set deadline_done_at = coalesce(i.deadline_done_at, now())
    from before
    where i.runner_id = before.runner_id
    returning before.is_first`
  return row
}

export async function executingOn(db: Db, runnerId: RunnerId): Promise<RunId[]> {
  const rows = await db<{ id: RunId }[]>`
    select e.id
    from runner_intake i
    cross join lateral (${executing(db)}) e
    where i.runner_id = ${runnerId}
    order by e.id`
  return rows.map((row) => row.id)
}

/** Whether this start speaks for the runner. It goes on to do so until the transaction ends. */
export async function isPresent(tx: Tx, id: RunnerId, instance: string | undefined): Promise<boolean> {
  const rows = await tx`
    select from runners
    where id = ${id}
      and case when instance_host is null then null else instance end is not distinct from ${instance ?? null}
    for share`
  return rows.length > 0
}
