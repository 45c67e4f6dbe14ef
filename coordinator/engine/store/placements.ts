import type { OrgId, RunId, RunnerId, VersionId } from '@windlass/shared/ids.ts'
import type { RunStatus } from '@windlass/shared/model/run.ts'
import type { Placement } from '@windlass/shared/wire/agent.ts'
import { amongIds, foundBy, onlyFilters, runById } from '../../db/by-key.ts'
import type { Db, Sql, Tx } from '../../db/client.ts'
import { unnest } from '../../db/unnest.ts'
import { isOwed } from './owed.ts'
import { isFresh } from './pulse.ts'

export interface Acceptance {
  runId: string
  runnerId: RunnerId
  /** Org of the runner. */
  orgId: OrgId
  epoch: number
  /** How long its agent may be silent; pools differ. */
  leaseMs: number
}

/**
 * Rows are locked in the order in which they are listed. Everybody who locks many placements takes the order of the
 * ids, or an acceptance, a heartbeat and an ending of the same runs would wait for each other in a circle.
 */
function byText(a: string, b: string): number {
  if (a === b) return 0
  return a < b ? -1 : 1
}

export interface Taken {
  /** Offers that were still there to be taken, by `acceptanceKey`, each with the status of its run. */
  statuses: Map<string, RunStatus>
  /** Their runners among those that had not accepted what they were given before. */
  unaccepted: RunnerId[]
}

/** Makes offers into leases. */
export async function accept(db: Db, given: Omit<Acceptance, 'orgId'>[]): Promise<Taken> {
  const acceptances = given.toSorted((a, b) => byText(a.runId, b.runId))
  const rows = await db<(Named & { status: RunStatus; unaccepted: RunnerId[] | null })[]>`
    update placements p
    set
      accepted_at      = coalesce(p.accepted_at, now()),
      renewed_at       = now(),
      lease_expires_at = clock_timestamp() + a.lease_ms * interval '1 millisecond'
    from ${unnest(db, 'a', acceptances, { runId: 'text', runnerId: 'text', epoch: 'int', leaseMs: 'float8' })}
    where ${foundBy(db, db`p.run_id`, db`a.run_id`)}
      and ${onlyFilters(db, db`p.runner_id = a.runner_id and p.epoch = a.epoch`)}
    returning p.run_id, p.runner_id, p.epoch, (select r.status from runs r where r.id = p.run_id) as status,
              (
                select array_agg(i.runner_id)
                from runner_intake i
                where i.runner_id = any(${[...new Set(given.map(({ runnerId }) => runnerId))]}) and i.unaccepted > 0
              ) as unaccepted`
  const statuses = new Map(rows.map((row) => [acceptanceKey(row), row.status]))
  const accepting = new Set(rows.map(({ runnerId }) => runnerId))
  return { statuses, unaccepted: (rows[0]?.unaccepted ?? []).filter((runnerId) => accepting.has(runnerId)) }
}

/** A placement as an agent names it, which need not be, and the org of the agent. */
export type NamedPlacement = Omit<Acceptance, 'leaseMs'>

type Named = Omit<NamedPlacement, 'orgId'>

/** With its runner: others that accept at the same moment may name what is not theirs. */
export function acceptanceKey({ runId, runnerId, epoch }: Named): string {
  return `${placementKey(runId, epoch)}/${runnerId}`
}

export function placementKey(runId: string, epoch: number): string {
  return `${runId}/${epoch}`
}

/** Notes that nothing of what the agent reports of this run can be stored now; `noteAcks` ends it. */
export async function noteRefusal(db: Db, { runId, runnerId, epoch }: Named): Promise<void> {
  await db`
    update placements
    set refused_since = coalesce(refused_since, now())
    where run_id = ${runId} and ${onlyFilters(db, db`runner_id = ${runnerId} and epoch = ${epoch}`)}`
}

export interface Renewed {
  runId: RunId
  epoch: number
  status: RunStatus
  cancelReason: string | null
  /** The time of the run, from its creation on or of its attempt, is used up. */
  timedOut: boolean
  versionId: VersionId
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

/** Those of these placements that the runner has, each once. */
export function among(
  sql: Sql,
  runnerId: RunnerId,
  placements: readonly Placement[],
): Promise<{ runId: RunId; epoch: number; accepted: boolean }[]> {
  return sql<{ runId: RunId; epoch: number; accepted: boolean }[]>`
    select distinct a.run_id, a.epoch, p.accepted_at is not null as accepted
    from ${unnest(sql, 'a', placements, { runId: ['text', ([run]) => run], epoch: ['int', ([, epoch]) => epoch] })}
    join placements p on ${foundBy(sql, sql`p.run_id`, sql`a.run_id`)}
    where ${onlyFilters(sql, sql`p.runner_id = ${runnerId} and p.epoch = a.epoch`)}`
}

/** The placements among these that their runs are in now, by `acceptanceKey`: what a commit finds under its lock. */
export async function currentAmong(db: Db, named: readonly Named[]): Promise<Set<string>> {
  const rows = await db<Named[]>`
    select r.id as run_id, r.runner_id, r.epoch
    from ${unnest(db, 'a', named, { runId: 'text', runnerId: 'text', epoch: 'int' })}
    join runs r on r.id = a.run_id
    where ${onlyFilters(db, db`r.runner_id = a.runner_id and r.epoch = a.epoch and r.place is not null`)}`
  return new Set(rows.map(acceptanceKey))
}

type ToCancel = Renewed & { runnerId: RunnerId }

const TO_CANCEL = (sql: Sql) => sql`
    select p.runner_id, p.run_id, p.epoch, r.status, r.cancel_reason, r.timed_out_at is not null as timed_out, r.version_id
    from placements p
    join runs r on r.id = p.run_id
    where (r.status = 'cancelling' or r.timed_out_at is not null)`

/** Runs of a runner that are to be cancelled. */
export function toCancel(db: Db, runnerIds: readonly string[]): Promise<ToCancel[]> {
  return db<ToCancel[]>`${TO_CANCEL(db)} and p.runner_id = any(${[...runnerIds]})`
}

/** Those of these runs that the runner has and that are to be cancelled. */
export function toCancelAmong(db: Db, runnerId: RunnerId, runIds: readonly string[]): Promise<ToCancel[]> {
  return db<ToCancel[]>`
    ${TO_CANCEL(db)} and p.run_id = any(${[...runIds]}) and ${onlyFilters(db, db`p.runner_id = ${runnerId}`)}`
}

/** The time of the offer and of what it was lengthened by. */
const isLate = (sql: Sql, offerMs: number) => sql`
  p.offered_at < now() - (${offerMs}::float8 + coalesce(p.lengthened_ms, 0)) * interval '1 millisecond'`

/**
 * Placements whose offer was not taken or whose lease has run out; none after `limitMs` without a pulse, and none that
 * a pulse has not lengthened yet.
 */
export function overdue(db: Db, offerMs: number, limitMs: number): Promise<{ runId: RunId; orgId: OrgId }[]> {
  return db<{ runId: RunId; orgId: OrgId }[]>`
    with late as materialized (
      select p.run_id
      from placements p
      where ${isFresh(db, limitMs)}
        and (p.accepted_at is null and ${isLate(db, offerMs)}
             or p.accepted_at is not null and p.lease_expires_at < now())
        and not ${isOwed(db)}
    )
    select l.run_id, r.org_id
    from late l
    cross join lateral (${runById(db, db`l.run_id`)}) r
    order by row_number() over (partition by r.org_id order by l.run_id), l.run_id
    limit 500`
}

/** Those of these runs that have a placement and of which nobody holds anything: run, placement or parent. */
export async function unlocked(db: Db, ids: readonly RunId[]): Promise<RunId[]> {
  const rows = await db<{ runId: RunId }[]>`
    with asked as materialized (
      select id, parent_run_id
      from runs
      where ${amongIds(db, db`id`, ids)}
    ),
    named as (
      select id from asked
      union
      select parent_run_id from asked where parent_run_id is not null
    ),
    found as materialized (
      select r.id
      from named n
      cross join lateral (${runById(db, db`n.id`)}) r
    ),
    free as materialized (
      select r.id
      from named n
      join runs r on r.id = n.id
      order by r.id
      for update of r skip locked
    ),
    free_placements as materialized (
      select run_id
      from placements
      where ${amongIds(db, db`run_id`, ids)}
      order by run_id
      for update skip locked
    )
    select p.run_id
    from free_placements p
    join asked a on a.id = p.run_id
    where not exists (
      select from found f
      where f.id in (a.id, a.parent_run_id) and f.id not in (select id from free)
    )`
  return rows.map(({ runId }) => runId)
}

export interface PlacementRow {
  runId: RunId
  runnerId: RunnerId
  epoch: number
  accepted: boolean
  offerLate: boolean
  leaseOver: boolean
  /** When it was offered, taken or last renewed, in milliseconds by the clock of the database. */
  touchedAt: number
  /** How long that is ago. */
  silentMs: number
  /** Its runner was revoked. */
  isRevoked: boolean
  /** The connection of its agent was ended on that side, and the agent was not heard of since. */
  wasClosed: boolean
}

/** Looks again under the locks of the runs: a heartbeat may have come in between. */
export async function recheck(
  tx: Tx,
  runIds: readonly string[],
  { offerMs, limitMs }: { offerMs: number; limitMs: number },
): Promise<Map<string, PlacementRow>> {
  const rows = await tx<PlacementRow[]>`
    select p.run_id, p.runner_id, p.epoch, p.accepted_at is not null as accepted,
           f.is_fresh and ${isLate(tx, offerMs)} and not ${isOwed(tx)} as offer_late,
           f.is_fresh and p.lease_expires_at < now() and not ${isOwed(tx)} as lease_over,
           (extract(epoch from greatest(p.offered_at, p.accepted_at, p.renewed_at)) * 1000)::float8 as touched_at,
           (extract(epoch from now() - greatest(p.offered_at, p.accepted_at, p.renewed_at)) * 1000)::float8
             as silent_ms,
           (i.state = 'revoked') is true as is_revoked,
           (n.disconnected_by = 'agent' and n.disconnected_at >= p.renewed_at) is true as was_closed
    from placements p
    cross join (select ${isFresh(tx, limitMs)} as is_fresh) f
    left join runners n on n.id = p.runner_id
    left join runner_intake i on i.runner_id = p.runner_id
    where p.run_id = any(${[...runIds]})
    order by p.run_id
    for update of p`
  return new Map(rows.map((row) => [row.runId, row]))
}
