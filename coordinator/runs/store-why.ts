import type { InputId, OrgId, PoolId, RunId, RunnerId, VersionId } from '@windlass/shared/ids.ts'
import type { Unready } from '@windlass/shared/model/runner.ts'
import type { RunStatus } from '@windlass/shared/model/run.ts'
import type { EntryKind } from '@windlass/shared/wire/journal.ts'
import type { Tx } from '../db/client.ts'
import { onlyFilters } from '../db/by-key.ts'
import type { Fragment } from '../db/newest.ts'
import type { ProcessState } from '../engine/rules/run.ts'

/** Everything about a run that says why it is where it is, at one moment. */
export interface Situation {
  id: RunId
  versionId: VersionId
  status: RunStatus
  attempt: number
  poolId: PoolId
  pool: string
  /** What is set; the rest has its default. */
  poolSettings: object
  /** A run may have come in a moment after; it waits for a pool of this name. */
  poolDeletedAt: Date | null
  /** As the queue has it. */
  needs: string
  place: ProcessState | null
  runnerId: RunnerId | null
  runner: string | null
  blocked: string | null
  error: string | null
  createdAt: Date
  queuedAt: Date
  claimedAt: Date | null
  startedAt: Date | null
  suspendedAt: Date | null
  finishedAt: Date | null
  cancelRequestedAt: Date | null
  timedOutAt: Date | null
  /** Where it waits to be counted, of the groups that it is counted in; null: it does not wait for that. */
  waitsInGroup: string | null
  /** How many may count there. */
  groupLimit: number | null
  /** By the clock of the database, like all other times here. */
  now: Date
  isInQueue: boolean
  enteredQueueAt: Date | null
  /** Runs that its pool gives out before this one. */
  ahead: number
  offeredAt: Date | null
  /** With what is noted beside the placement, as somebody holds it. */
  leaseExpiresAt: Date | null
  /** Something is noted there: nobody judges the lease until the placement is free. */
  isHeld: boolean
  /** By how much its lease was lengthened because nobody could renew it; null: never. */
  lengthenedMs: number | null
  lengthenedAt: Date | null
  /** Since when nothing that its agent reports can be stored; null: it can. */
  refusedSince: Date | null
  /** Of the runner that has it: its last poll or heartbeat. */
  lastHeardAt: Date | null
  /** What its machine was last found not to be ready for; null: no runner has it. */
  unready: Unready[] | null
  entersAt: Date | null
  /** It waits until then as its agent could not prepare it: only that says a reason when it enters the queue later. */
  isPutOff: boolean
  /** What it waits for until then besides time: JSON. */
  holds: string | null
  queueTimeoutAt: Date | null
  /** What has been completed and not been given to the program yet. */
  undelivered: number
  /** When the first of that was. */
  completedAt: Date | null
  /** When its replay could not go on. */
  blockedAt: Date | null
  /** The last thing that the log says about its status. */
  lastMoveAt: Date | null
  cancelledBy: string | null
  /** Runs of that group that count, and waiters that go before it. */
  counted: number
  /** Of those that count, the ones that wait for room in another group of theirs. */
  reserved: number
  waitersAhead: number
}

/**
 * A longer log is not searched: the run is busy, and the begin of its placement is told in place of its last move. Who
 * has cancelled it is not told then.
 */
const LOG_SEARCHED = 5000

/** Of the last such line in the log of the run `r`. */
const lastly = (tx: Tx, isSuch: Fragment, what: Fragment) => tx`
  (
    select ${what}
    from run_events v
    where v.run_id = r.id and v.cursor > r.cursor - ${LOG_SEARCHED} and ${isSuch}
    order by v.cursor desc
    limit 1
  )`

export async function situation(tx: Tx, orgId: OrgId, id: RunId): Promise<Situation | undefined> {
  const [row] = await tx<Situation[]>`
    select r.id, r.version_id, r.status, r.attempt, r.pool_id, p.name as pool, p.settings as pool_settings,
           p.deleted_at as pool_deleted_at, r.needs, r.place, n.id as runner_id, n.name as runner, r.blocked, r.error,
           r.created_at,
           case when r.queued_at > now() then r.created_at else r.queued_at end as queued_at, r.claimed_at, r.started_at,
           r.suspended_at, r.finished_at, r.cancel_requested_at, r.timed_out_at,
           w.group_key as waits_in_group, w.slots as group_limit, now() as now,
           q.run_id is not null as is_in_queue, q.entered_at as entered_queue_at,
           case when q.run_id is not null then (
             select count(*)::int
             from run_queue a
             where a.pool_id = q.pool_id
               and (a.is_resume, a.priority, -a.position) > (q.is_resume, q.priority, -q.position)
           ) else 0 end as ahead,
           l.offered_at, o.run_id is not null as is_held,
           -- It ignores null. An offer has no lease.
           case when l.accepted_at is not null then greatest(
             l.lease_expires_at + coalesce(o.forward_ms, 0) * interval '1 millisecond',
             o.least_until
           ) else l.lease_expires_at end as lease_expires_at,
           l.lengthened_ms::float8 as lengthened_ms, l.lengthened_at,
           l.refused_since,
           greatest(n.last_poll_at, n.last_heartbeat_at) as last_heard_at, n.unready,
           e.due_at as enters_at, e.holds,
           (select t.due_at from timers t where t.run_id = r.id and t.kind = 'queue-timeout') as queue_timeout_at,
           (
             select count(*)::int
             from journal j
             where j.run_id = r.id and j.attempt = r.attempt and j.completion is not null and j.delivered is null
           ) as undelivered,
           (
             select min(j.completed_at)
             from journal j
             where j.run_id = r.id and j.attempt = r.attempt and j.completion is not null and j.delivered is null
           ) as completed_at,
           case when r.blocked is not null then ${lastly(tx, tx`v.type = 'run.blocked'`, tx`to_timestamp(v.at / 1000.0)`)} end as blocked_at,
           case when r.status = 'queued' and e.run_id is not null then
             ${lastly(tx, tx`v.type = 'run.queued'`, tx`v.data::json -> 'reason' is not null`)}
           else false end as is_put_off,
           ${lastly(tx, tx`v.type in ('run.running', 'run.resumed')`, tx`to_timestamp(v.at / 1000.0)`)} as last_move_at,
           case when r.status = 'cancelling' then
             ${lastly(tx, tx`v.type = 'run.cancelling'`, tx`v.data::json ->> 'by'`)}
           end as cancelled_by,
           case when w.run_id is not null then (
             select coalesce(max(g.taken), 0) from concurrency_groups g where g.group_key = w.group_key
           ) else 0 end as counted,
           case when w.run_id is not null then (
             select count(*)::int
             from concurrency_slots s
             join concurrency_waiters a on a.run_id = s.run_id
             where s.group_key = w.group_key
           ) else 0 end as reserved,
           case when w.run_id is not null then (
             select count(*)::int
             from concurrency_waiters a
             where a.group_key = w.group_key and (a.priority, -a.position) > (w.priority, -w.position)
           ) else 0 end as waiters_ahead
    from runs r
    join runner_pools p on p.id = r.pool_id
    left join run_queue q on q.run_id = r.id
    left join placements l on l.run_id = r.id
    left join lengthenings_owed o on o.run_id = l.run_id and o.epoch = l.epoch
    left join runners n on n.id = coalesce(l.runner_id, case when r.status in ('pending', 'running') then r.runner_id end)
    left join concurrency_waiters w on w.run_id = r.id
    left join timers e on e.run_id = r.id and e.kind = 'enqueue'
    where r.id = ${id} and ${onlyFilters(tx, tx`r.org_id = ${orgId}`)}`
  return row
}

/** An open wait in the journal, with its question or its child. */
export interface Wait {
  kind: Exclude<EntryKind, 'step'>
  site: string
  openedAt: Date
  dueAt: Date | null
  inputId: InputId | null
  prompt: string | null
  /** Its program has an answer for when nobody gives one. That may have a megabyte, and is not read. */
  hasDefault: boolean
  childRunId: RunId | null
  childStatus: RunStatus | null
  childWorkflow: string | null
}

const WAITS_SHOWN = 100

export function waits(tx: Tx, id: RunId, attempt: number): Promise<Wait[]> {
  return tx<Wait[]>`
    select j.kind, j.site, j.opened_at,
           -- It may be put off.
           coalesce(
             (select t.due_at from timers t where t.run_id = j.run_id and t.kind = j.kind and t.n = j.n),
             j.due_at
           ) as due_at,
           i.id as input_id, i.prompt, i.on_timeout is not null as has_default, j.child_run_id,
           c.status as child_status, w.slug as child_workflow
    from journal j
    left join inputs i on i.run_id = j.run_id and i.n = j.n
    left join runs c on c.id = j.child_run_id
    left join workflows w on w.id = c.workflow_id
    where j.run_id = ${id} and j.attempt = ${attempt} and j.state = 'open' and j.kind <> 'step'
    order by j.n
    limit ${WAITS_SHOWN}`
}

export interface PoolRunner {
  id: RunnerId
  name: string
  state: 'open' | 'cordoned' | 'draining' | 'revoked'
  byKind: 'caller' | 'agent' | 'system' | null
  byName: string | null
  since: Date
  reason: string
  quarantinedUntil: Date | null
  quarantineReason: string | null
  /** The first of them. */
  unready: Unready[]
  /** Of all. */
  unreadyCount: number
  capabilities: string[]
  /** Its own. */
  labels: string[]
  slots: number
  /** Slots that are taken; a parked process takes none. */
  busy: number
  lastPollAt: Date | null
  lastHeartbeatAt: Date | null
}

/** Runners that were installed once and are gone stay in the list for ever; the lately heard of come first. */
const RUNNERS_SHOWN = 500
/** Of what is in the way of one of them. */
const UNREADY_SHOWN = 3

export function runnersOf(tx: Tx, poolId: string): Promise<PoolRunner[]> {
  return tx<PoolRunner[]>`
    select n.id, n.name, i.state, i.by_kind, i.by_name, i.since, i.reason, i.quarantined_until, i.quarantine_reason,
           (
             select coalesce(json_agg(said.one order by said.nth), '[]')
             from json_array_elements(n.unready) with ordinality as said (one, nth)
             where said.nth <= ${UNREADY_SHOWN}
           ) as unready,
           json_array_length(n.unready) as unready_count,
           n.capabilities, n.labels, n.slots, n.last_poll_at, n.last_heartbeat_at,
           (
             select coalesce(sum(l.slots), 0)::int
             from placements l
             join runs r on r.id = l.run_id
             where l.runner_id = n.id and r.place is distinct from 'parked'
           ) as busy
    from runners n
    join runner_intake i on i.runner_id = n.id
    where n.pool_id = ${poolId} and n.deregistered_at is null
    order by greatest(n.last_poll_at, n.last_heartbeat_at) desc nulls last, n.id
    limit ${RUNNERS_SHOWN}`
}

/** A runner that is kept for a run that waits. */
export interface Reserved {
  runnerId: RunnerId
  runId: RunId
  needs: string
  /** The run is the one that is asked about; else it goes before that one. */
  isOwn: boolean
}

/** Runners that this run, or one that its pool gives out before it, keeps. A run that has gone keeps none any more. */
export async function reservedFor(
  tx: Tx,
  { id, poolId }: Pick<Situation, 'id' | 'poolId'>,
  reservations: ReadonlyMap<RunId, RunnerId>,
): Promise<Reserved[]> {
  if (reservations.size === 0) return []
  const rows = await tx<Omit<Reserved, 'runnerId'>[]>`
    select a.run_id, a.needs, a.run_id = q.run_id as is_own
    from unnest(${[...reservations.keys()]}::text[]) as t (run_id)
    join run_queue a on a.run_id = t.run_id
    join run_queue q on q.run_id = ${id}
    where a.pool_id = ${poolId}
      and (a.is_resume, a.priority, -a.position) >= (q.is_resume, q.priority, -q.position)`
  return rows.map((row) => ({ ...row, runnerId: reservations.get(row.runId)! }))
}

const HOLDERS_SHOWN = 10

/** Runs that count where this one waits to be counted, the oldest first. */
export async function holders(tx: Tx, group: string): Promise<RunId[]> {
  const rows = await tx<{ runId: RunId }[]>`
    select run_id
    from concurrency_slots
    where group_key = ${group}
    order by run_id
    limit ${HOLDERS_SHOWN}`
  return rows.map((row) => row.runId)
}
