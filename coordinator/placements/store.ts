import type { OrgId, PoolId, RunId, RunnerId, VersionId } from '@windlass/shared/ids.ts'
import type { RunStatus } from '@windlass/shared/model/run.ts'
import type { Placement } from '@windlass/shared/wire/agent.ts'
import type { Db, Tx } from '../db/client.ts'

/** A run that has just been given to a runner. */
export interface Claimed {
  runId: RunId
  runnerId: RunnerId
  orgId: OrgId
  versionId: VersionId
  attempt: number
  epoch: number
  environment: string | null
  /** What its variables are, from its first claim on. */
  variableSetId: string
  hasSecrets: boolean
  /** Its environment does not exist any more, and it has never been claimed. */
  isHomeless: boolean
  input: string
  /** It was suspended, and continues where it stood. */
  isResume: boolean
  /** Entries in its journal. */
  entries: number
  /** What this attempt has computed so far, in milliseconds. */
  activeMs: number
}

/**
 * Gives the next runs of a pool to runners, one to each element of `takers` (a runner with three free slots stands there
 * three times). One statement: the queue rows go, the runs become pending under a new epoch, the placements appear. A run that
 * continues keeps its status until it is led back to where it stood.
 */
export function claim(db: Db, poolId: PoolId, takers: RunnerId[], offerMs: number): Promise<Claimed[]> {
  return db<Claimed[]>`
    with next as (
      select run_id
      from run_queue
      where pool_id = ${poolId}
      order by is_resume desc, priority desc, position
      limit ${takers.length}
      for update skip locked
    ),
    dequeued as (
      delete from run_queue q
      using next
      where q.run_id = next.run_id
      returning q.run_id, q.is_resume
    ),
    -- Runs are locked in the order of their ids by everybody, and the queue has another.
    locked as materialized (
      select r.id
      from next
      join runs r on r.id = next.run_id
      order by r.id
      for update of r
    ),
    given as (select run_id, is_resume, (${takers}::text[])[row_number() over ()] as runner_id from dequeued),
    claimed as (
      update runs
      set
        status     = case when given.is_resume then runs.status else 'pending' end,
        place      = case when given.is_resume then 'replaying' else 'hot' end,
        epoch      = epoch + 1,
        seq        = 0,
        cursor     = case when given.is_resume then cursor else cursor + 1 end,
        claimed_at = now(),
        runner_id  = given.runner_id,
        -- Stays null for one whose environment is gone: it is not started with the variables of the org alone.
        variable_set_id = coalesce(
          variable_set_id,
          (select set_id from variable_heads h where h.org_id = runs.org_id and h.environment = coalesce(runs.environment, '')),
          case when environment is null then 0 end
        )
      from given
      where runs.id = given.run_id and runs.id in (select id from locked) and runs.place is null and runs.blocked is null
        and (runs.status = 'queued' and not given.is_resume
             or runs.status in ('sleeping', 'awaiting_input', 'waiting_for_child') and given.is_resume)
      returning runs.id as run_id, runs.runner_id, runs.org_id, runs.version_id, runs.attempt, runs.epoch, runs.cursor,
                runs.environment, runs.variable_set_id, runs.input, given.is_resume, runs.entries, runs.active_ms
    ),
    placed as (
      insert into placements (run_id, runner_id, epoch, lease_expires_at)
      select run_id, runner_id, epoch, now() + ${offerMs} * interval '1 millisecond'
      from claimed
    ),
    logged as (
      insert into run_events (run_id, cursor, at, channel, type, data)
      select run_id, cursor, extract(epoch from now()) * 1000, 'lifecycle', 'run.pending',
             json_build_object('runner', runner_id, 'attempt', attempt, 'epoch', epoch)::text
      from claimed
      where not is_resume
    )
    select run_id, runner_id, org_id, version_id, attempt, epoch, environment, variable_set_id,
           -- Without its environment it is refused its secrets, in place of being given those of the org alone.
           coalesce(
             (select has_secrets from variable_heads h where h.org_id = c.org_id and h.environment = coalesce(c.environment, '')),
             environment is not null
           ) as has_secrets,
           variable_set_id is null as is_homeless,
           input, is_resume, entries, active_ms::float8 as active_ms
    from claimed c`
}

export interface Acceptance {
  runId: string
  runnerId: RunnerId
  epoch: number
}

const column = <T, K extends keyof T>(rows: readonly T[], key: K): T[K][] => rows.map((row) => row[key])

/**
 * Rows are locked in the order in which they are listed. Everybody who locks many placements takes the order of the ids, or an
 * acceptance, a heartbeat and an ending of the same runs would wait for each other in a circle.
 */
function byText(a: string, b: string): number {
  if (a === b) return 0
  return a < b ? -1 : 1
}

/** Makes offers into leases. Answers those that were still there to be taken, each with the status of its run. */
export async function accept(db: Db, given: Acceptance[], leaseMs: number): Promise<Map<string, RunStatus>> {
  const acceptances = given.toSorted((a, b) => byText(a.runId, b.runId))
  const rows = await db<{ runId: string; epoch: number; status: RunStatus }[]>`
    update placements p
    set accepted_at = coalesce(p.accepted_at, now()), lease_expires_at = now() + ${leaseMs} * interval '1 millisecond'
    from unnest(${column(acceptances, 'runId')}::text[], ${column(acceptances, 'runnerId')}::text[], ${column(acceptances, 'epoch')}::int[])
      as a (run_id, runner_id, epoch)
    where p.run_id = a.run_id and p.runner_id = a.runner_id and p.epoch = a.epoch
    returning p.run_id, p.epoch, (select r.status from runs r where r.id = p.run_id) as status`
  return new Map(rows.map((row) => [placementKey(row.runId, row.epoch), row.status]))
}

export function placementKey(runId: string, epoch: number): string {
  return `${runId}/${epoch}`
}

export interface Renewed {
  runId: RunId
  epoch: number
  status: RunStatus
  cancelReason: string | null
  /** The time from the run's creation on is used up. */
  timedOut: boolean
  versionId: VersionId
}

/**
 * Renews the leases of a runner by one heartbeat. What is not in the answer is no longer his. An offer is in it too: the
 * agent may have accepted it a moment ago, and while that is not committed the time of the offer alone counts.
 */
export function renew(db: Db, runnerId: RunnerId, given: readonly Placement[], leaseMs: number): Promise<Renewed[]> {
  const holds = given.toSorted(([a], [b]) => byText(a, b))
  return db<Renewed[]>`
    with beat as (
      update runners
      set last_heartbeat_at = now()
      where id = ${runnerId}
    ),
    renewed as (
      update placements p
      set lease_expires_at = now() + ${leaseMs} * interval '1 millisecond'
      from unnest(${holds.map((h) => h[0])}::text[], ${holds.map((h) => h[1])}::int[]) as h (run_id, epoch)
      where p.run_id = h.run_id and p.epoch = h.epoch and p.runner_id = ${runnerId}
      returning p.run_id, p.epoch
    )
    select renewed.run_id, renewed.epoch, r.status, r.cancel_reason, r.timed_out_at is not null as timed_out, r.version_id
    from renewed
    join runs r on r.id = renewed.run_id`
}

export interface Held extends Renewed {
  seq: number
  accepted: boolean
}

/** Everything that the database believes a runner to have. */
export function heldBy(db: Db, runnerId: RunnerId): Promise<Held[]> {
  return db<Held[]>`
    select p.run_id, p.epoch, p.accepted_at is not null as accepted, r.status, r.cancel_reason,
           r.timed_out_at is not null as timed_out, r.version_id, r.seq
    from placements p
    join runs r on r.id = p.run_id
    where p.runner_id = ${runnerId}`
}

/** Runs of a runner that are to be cancelled. */
export function toCancel(db: Db, runnerIds: readonly string[]): Promise<(Renewed & { runnerId: RunnerId })[]> {
  return db<(Renewed & { runnerId: RunnerId })[]>`
    select p.runner_id, p.run_id, p.epoch, r.status, r.cancel_reason, r.timed_out_at is not null as timed_out, r.version_id
    from placements p
    join runs r on r.id = p.run_id
    where p.runner_id = any(${[...runnerIds]}) and (r.status = 'cancelling' or r.timed_out_at is not null)`
}

/** Placements whose offer was not taken or, where `leases` says so, whose lease has run out. */
export function overdue(db: Db, offerMs: number, leases: boolean): Promise<{ runId: RunId }[]> {
  return db<{ runId: RunId }[]>`
    select run_id
    from placements
    where (accepted_at is null and offered_at < now() - ${offerMs} * interval '1 millisecond')
       or (${leases} and accepted_at is not null and lease_expires_at < now())
    order by run_id
    limit 500`
}

export interface PlacementRow {
  runId: RunId
  epoch: number
  accepted: boolean
  offerLate: boolean
  leaseOver: boolean
}

/** Looks again under the locks of the runs: a heartbeat may have come in between. */
export async function recheck(tx: Tx, runIds: readonly string[], offerMs: number): Promise<Map<string, PlacementRow>> {
  const rows = await tx<PlacementRow[]>`
    select run_id, epoch, accepted_at is not null as accepted,
           offered_at < now() - ${offerMs} * interval '1 millisecond' as offer_late,
           lease_expires_at < now() as lease_over
    from placements
    where run_id = any(${[...runIds]})
    order by run_id
    for update`
  return new Map(rows.map((row) => [row.runId, row]))
}
