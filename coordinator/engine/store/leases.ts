import type { RunnerId } from '@windlass/shared/ids.ts'
import type { IntakeState } from '@windlass/shared/model/runner.ts'
import type { Placement } from '@windlass/shared/wire/agent.ts'
import { foundBy, onlyFilters, runById } from '../../db/by-key.ts'
import type { Db, Sql } from '../../db/client.ts'
import type { Fragment } from '../../db/newest.ts'
import { unnest } from '../../db/unnest.ts'
import { renewalsOwed, touched } from './owed.ts'
import { placementKey, type Renewed } from './placements.ts'

/** One heartbeat: what an agent executes, and for how long it may go on without another. */
export interface Beat {
  runnerId: RunnerId
  holds: readonly Placement[]
  leaseMs: number
}

/** What is known of the runner of a heartbeat. */
export interface RunnerRow {
  runId: null
  runnerId: RunnerId
  intakeState: IntakeState
  intakeEpoch: number
  intakeReason: string
  deadlineAt: Date | null
}

/** A lease that was renewed. */
export type RenewedRow = Renewed & { runnerId: RunnerId }

/** What was given to these runners and is theirs still, by `placementKey`. */
export async function givenTo(db: Db, runnerIds: readonly RunnerId[]): Promise<Map<RunnerId, Set<string>>> {
  const rows = await db<{ runnerId: RunnerId; runId: string; epoch: number }[]>`
    select runner_id, run_id, epoch
    from placements
    where runner_id = any(${[...runnerIds]})`
  const given = new Map<RunnerId, Set<string>>()
  for (const { runnerId, runId, epoch } of rows) {
    const own = given.get(runnerId) ?? new Set()
    given.set(runnerId, own.add(placementKey(runId, epoch)))
  }
  return given
}

/** What the agents of these heartbeats execute, as rows `h`, in the order in which everybody locks placements. */
function named(db: Sql, beats: readonly Beat[]): Fragment {
  const held = beats.flatMap(({ runnerId, holds, leaseMs }) =>
    holds.map(([run, epoch]) => ({ run, epoch, runnerId, leaseMs })),
  )
  held.sort((a, b) => (a.run < b.run ? -1 : Number(a.run > b.run)))
  return unnest(db, 'h', held, { runId: ['text', (h) => h.run], epoch: 'int', runnerId: 'text', leaseMs: 'float8' })
}

const isTheirs = (sql: Sql): Fragment => sql`p.epoch = h.epoch and p.runner_id = h.runner_id`

/**
 * Renews the leases of many agents in one statement, and answers a row for each of the runners besides. A run that is
 * not in the answer is no longer theirs, or somebody holds its placement. An offer is in it too: the agent may have
 * accepted it a moment ago, and while that is not committed the time of the offer alone counts. Leases begin when the
 * row is written: a database that stood still in between must not give one that is over.
 */
export function beat(db: Sql, beats: readonly Beat[]): Promise<(RunnerRow | RenewedRow)[]> {
  const runnerIds = beats.map(({ runnerId }) => runnerId)
  return db<(RunnerRow | RenewedRow)[]>`
    with heard as materialized (
      select id
      from runners
      where id = any(${runnerIds})
      order by id
      -- Whoever has the row is writing of the same runner, and that it lives is known to him.
      for no key update skip locked
    ),
    noted as (update runners r set last_heartbeat_at = now() from heard where r.id = heard.id),
    ${renewing(db, beats, db`skip locked`)}
    select i.runner_id, i.epoch as intake_epoch, i.reason as intake_reason, i.deadline_at,
           case
             -- A plan for NOT EXISTS that is made on an empty table may read all of it.
             when i.state = 'draining'
               and (select p.run_id from placements p where p.runner_id = i.runner_id limit 1) is null then 'drained'
             else i.state
           end as intake_state,
           null as run_id, null as epoch, null as status, null as cancel_reason, null as timed_out, null as version_id
    from runner_intake i
    where i.runner_id = any(${runnerIds})
    union all
    select t.runner_id, null, null, null, null, ${ofRun(db)}
    from renewed t
    cross join lateral (${runById(db, db`t.run_id`)}) r`
}

/** Renews leases as `beat` does, and waits for placements that somebody holds. */
export function renew(db: Sql, beats: readonly Beat[]): Promise<RenewedRow[]> {
  return db<RenewedRow[]>`
    with ${renewing(db, beats, db``)}
    select t.runner_id, ${ofRun(db)}
    from renewed t
    cross join lateral (${runById(db, db`t.run_id`)}) r`
}

const renewing = (db: Sql, beats: readonly Beat[], locked: Fragment): Fragment => db`
  free as materialized (
    select p.run_id, h.lease_ms
    from ${named(db, beats)}
    join placements p on ${foundBy(db, db`p.run_id`, db`h.run_id`)}
    where ${onlyFilters(db, isTheirs(db))}
    for no key update of p ${locked}
  ),
  renewed as (
    update placements p
    set lease_expires_at = clock_timestamp() + f.lease_ms * interval '1 millisecond', renewed_at = now()
    from free f
    where ${foundBy(db, db`p.run_id`, db`f.run_id`)}
    returning p.run_id, p.epoch, p.runner_id
  )`

/** Of placement `t` and its run `r`. */
const ofRun = (sql: Sql): Fragment => sql`
  r.id as run_id, t.epoch, r.status, r.cancel_reason, r.timed_out_at is not null as timed_out, r.version_id`

/**
 * Renews the leases of placements that somebody holds, without waiting for them: see `owed.ts`. Answers what is theirs.
 * An offer needs nothing: its acceptance, which waits as well, begins its lease.
 */
export function renewHeld(db: Db, beats: readonly Beat[]): Promise<RenewedRow[]> {
  return db<RenewedRow[]>`
    with theirs as materialized (
      -- An agent may name one twice.
      select distinct on (p.run_id) p.run_id, p.epoch, p.runner_id, p.accepted_at is not null as is_accepted,
             ${touched(db)} as touched_at, h.lease_ms
      from ${named(db, beats)}
      join placements p on ${foundBy(db, db`p.run_id`, db`h.run_id`)}
      where ${onlyFilters(db, isTheirs(db))}
      order by p.run_id
    ),
    ${renewalsOwed(db)}
    select t.runner_id, ${ofRun(db)}
    from theirs t
    cross join lateral (${runById(db, db`t.run_id`)}) r`
}
