import type { OrgId, PoolId, RunId, RunnerId, VersionId } from '@windlass/shared/ids.ts'
import type { TriggerKind } from '@windlass/shared/model/run.ts'
import { foundBy, onlyFilters } from '../../db/by-key.ts'
import type { Db, Sql } from '../../db/client.ts'
import { unnest } from '../../db/unnest.ts'
import type { Tick } from './new-runs.ts'
import { tellOrgs } from '../../events/store.ts'
import type { Pair } from '../../matching/candidate.ts'
import { INLINE_INPUT_BYTES, withInputs } from './claimed-inputs.ts'

/** A run that has just been given to a runner. */
export interface Claimed {
  runId: RunId
  runnerId: RunnerId
  orgId: OrgId
  versionId: VersionId
  attempt: number
  epoch: number
  environment: string | null
  triggerKind: TriggerKind
  triggerId: string | null
  triggerActor: string | null
  tickHow: Tick['how'] | null
  tickAt: Date | null
  tickLate: number | null
  /** What its variables are, from its first claim on. */
  variableSetId: string
  hasSecrets: boolean
  /** Its environment does not exist any more, and it has never been claimed. */
  hasNoEnvironment: boolean
  input: string
  /** It was suspended, and continues where it stood. */
  isResume: boolean
  /** Entries in its journal, those included that it has forgotten. */
  entries: number
  forgottenEntries: number
  /** What this attempt has computed so far, in milliseconds. */
  activeMs: number
}

/** A large input is read when the claim has committed. */
type ClaimRow = Omit<Claimed, 'input'> & { input: string | null }

/** A runner that asks for work. */
export interface ClaimCandidate {
  runnerId: RunnerId
  /** That are free. */
  slots: number
  /** How many of them count now, so that few runs are spread over many runners. */
  share: number
}

/**
 * Bytes of inputs that one claim gives out, or one run. An agent has to read the answer and accept within the 15 s of
 * an offer, also over a line of 1 Mbit/s; what is too much for that would be offered to it for ever.
 */
const MOST_BYTES = 1024 * 1024

/** What is given work at present. Judged twice: where it is looked for, and again under lock. */
export const isOpen = (sql: Sql) => sql`
  i.state = 'open' and (i.quarantined_until is null or i.quarantined_until <= now())`

/** What the pool demands of its machines, once for all of them. */
export const demands = (sql: Sql, poolId: PoolId) => sql`
  demands as materialized (
    select (settings ->> 'isolation' = 'bubblewrap' or settings ->> 'network' = 'none') is true as wants_bubblewrap
    from runner_pools
    where id = ${poolId}
  )`

/** Whether the agent of the runner `r` can do what its pool demands. */
export const isAble = (sql: Sql) => sql`
  r.deregistered_at is null and (not d.wants_bubblewrap or 'bubblewrap' = any(r.capabilities))`

/**
 * Those of the candidates that are open, seen again under lock: a claim holds the rows of its candidates in share mode
 * until it commits, and whoever closes a runner waits for that. So nothing is given out at or after the epoch of such a
 * change. In the order of the ids, and before any row of queue or runs is locked.
 */
const locked = (sql: Sql) => sql`
  open as materialized (
    select s.runner_id, s.share, s.n
    from candidates s
    join runner_intake i on i.runner_id = s.runner_id
    where ${isOpen(sql)}
    order by i.runner_id
    for share of i
  )`

/** What the logs of those claimed say of it. */
const logged = (sql: Sql) => sql`
  news as (
    select org_id, run_id, cursor, extract(epoch from now()) * 1000 as at, 'run.pending' as type,
           json_build_object('runner', runner_id, 'attempt', attempt, 'epoch', epoch)::text as data
    from claimed
    where not is_resume
  ),
  logged as (
    insert into run_events (run_id, cursor, at, channel, type, data)
    select run_id, cursor, at, 'lifecycle', type, data from news
  ),
  told as (${tellOrgs(sql, sql`news`)})`

/**
 * The queue rows in `next` go, the runs become pending under a new epoch, the placements appear. A run that continues
 * keeps its status until it is led back to where it stood.
 *
 * The update starts from the locked rows, so no row is updated before its lock is taken, and every row of `next` whose
 * run is still there gets as far as the update. That reads the runs as they were when the statement began. Where
 * another transaction has changed one since, PostgreSQL checks the conditions again on the newest row, which is the one
 * under our lock: status, place and block decide by what is true now, and a run that was moved meanwhile is left as it
 * is.
 */
const give = (sql: Sql, offerMs: number) => sql`
  -- Everybody locks runs in the order of their ids; the queue has another. The update takes its rows from here: a
  -- comparison of its runs with a list of the locked ids would compare each with each.
  locked as materialized (
    select next.*, octet_length(r.input) as bytes
    from next
    join runs r on r.id = next.run_id
    order by r.id
    for update of r
  ),
  -- The inputs of one claim are read, and told to an agent, in one go. What would be too much stays in the queue.
  fitting as materialized (
    select run_id, is_resume, runner_id, slots, sum(bytes) over line <= ${INLINE_INPUT_BYTES} as is_inline,
           sum(bytes) over line <= ${MOST_BYTES} or row_number() over line = 1 as fits
    from locked
    window line as (order by is_resume desc, priority desc, position)
  ),
  -- An object, for the same reason as the seats of chosen pairs.
  staying as materialized (
    select coalesce(jsonb_object_agg(run_id, true), '{}') as run_ids
    from fitting
    where not fits
  ),
  -- By the list of their keys. When an old snapshot keeps dead rows, the planner takes the table for empty and a join
  -- for one that may begin with it: that passes over all of them.
  dequeued as (
    delete from run_queue
    where run_id = any(array(select run_id from next)) and not (select run_ids from staying) ? run_id
  ),
  given as (
    select run_id, is_resume, slots, is_inline,
           coalesce(runner_id, (select runners from seats)[row_number() over ()]) as runner_id
    from fitting
    where fits
  ),
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
    where runs.id = given.run_id and runs.place is null and runs.blocked is null
      and (runs.status = 'queued' and not given.is_resume
           or runs.status in ('sleeping', 'awaiting_input', 'waiting_for_child') and given.is_resume)
    returning runs.id as run_id, runs.runner_id, runs.org_id, runs.version_id, runs.attempt, runs.epoch, runs.cursor,
              runs.environment, runs.trigger_kind, runs.trigger_id, runs.trigger_actor, runs.tick, runs.tick_at,
              runs.tick_late,
              runs.variable_set_id, case when given.is_inline then runs.input end as input, given.is_resume,
              given.slots, runs.entries, runs.forgotten_entries, runs.active_ms
  ),
  placed as (
    insert into placements (run_id, runner_id, epoch, slots, lease_expires_at)
    select run_id, runner_id, epoch, slots, now() + ${offerMs} * interval '1 millisecond'
    from claimed
  ),
  ${logged(sql)},
  answer as (
    select run_id, runner_id, org_id, version_id, attempt, epoch, environment,
           trigger_kind, trigger_id, trigger_actor, tick as tick_how, tick_at, tick_late::float8 as tick_late,
           variable_set_id,
           -- Without its environment it is refused its secrets, in place of being given those of the org alone.
           coalesce(
             (select has_secrets from variable_heads h where h.org_id = c.org_id and h.environment = coalesce(c.environment, '')),
             environment is not null
           ) as has_secrets,
           variable_set_id is null as has_no_environment,
           input, is_resume, entries, forgotten_entries, active_ms::float8 as active_ms
    from claimed c
  )`

export interface Plain {
  claimed: Claimed[]
  /** Other runs than those wait as well; so nothing was given. */
  isMixed: boolean
  /** A runner was closed at this moment; what it would have got waits for another. */
  isMissed: boolean
  /** Whether there was more for these runners than one claim gives out. */
  isCut: boolean
}

/**
 * Gives the next runs of a pool to these runners, as long as all that wait there need one slot and no label: one
 * statement, in which any run fits any of them. No more runners are locked than there are runs. Begins at `floor`, see
 * `QueueFloors`.
 */
export async function claimPlain(
  db: Db,
  poolId: PoolId,
  { candidates, most, floor = 0 }: { candidates: readonly ClaimCandidate[]; most: number; floor?: number },
  offerMs: number,
): Promise<Plain> {
  const rows = await db<(ClaimRow & Pick<Plain, 'isMixed' | 'isMissed' | 'isCut'>)[]>`
    with mixed as materialized (
      select exists (
        select from run_queue where pool_id = ${poolId} and needs > '' and position >= ${floor}
      ) as is_mixed
    ),
    there as materialized (
      select count(*) as runs
      from (
        select
        from run_queue
        where pool_id = ${poolId} and needs = '' and position >= ${floor} and not (select is_mixed from mixed)
        limit ${most}
      ) queued
    ),
    ${demands(db, poolId)},
    candidates as materialized (
      select t.runner_id, t.share, t.n
      from ${unnest(db, 't', candidates, { runnerId: 'text', share: 'int', n: 'ordinality' })}
      join runner_intake i on i.runner_id = t.runner_id
      cross join lateral (select deregistered_at, capabilities from runners where id = t.runner_id offset 0) r
      cross join demands d
      where ${isOpen(db)} and ${isAble(db)}
      order by t.n
      limit (select runs from there)
    ),
    ${locked(db)},
    -- A, B, A, B … so that few runs are spread over many runners.
    seats as materialized (
      select coalesce(array_agg(o.runner_id order by round, o.n), '{}') as runners
      from open o
      cross join lateral generate_series(1, o.share) as round
    ),
    next as materialized (
      select run_id, is_resume, priority, position, null::text as runner_id, 1 as slots
      from run_queue
      where pool_id = ${poolId} and needs = '' and position >= ${floor}
      order by is_resume desc, priority desc, position
      limit (select least(${most}::int, cardinality(runners)) from seats)
      for update skip locked
    ),
    ${give(db, offerMs)}
    select m.is_mixed, (select count(*) from candidates) > (select count(*) from open) as is_missed,
           exists (select from fitting where not fits) as is_cut, answer.*
    from mixed m
    left join answer on true`
  const [first] = rows
  const claimed = rows.filter(({ runId }) => (runId as RunId | null) !== null)
  return {
    claimed: await withInputs(db, claimed),
    isMixed: first?.isMixed === true,
    isMissed: first?.isMissed === true,
    isCut: first?.isCut === true,
  }
}

/** Gives runs to the runners that were chosen for them, as far as they are still there and the runners still open. */
export async function claimPairs(db: Db, poolId: PoolId, pairs: readonly Pair[], offerMs: number): Promise<Claimed[]> {
  const runners = [...new Set(pairs.map(({ runnerId }) => runnerId))]
  const rows = await db<ClaimRow[]>`
    with ${demands(db, poolId)},
    candidates as materialized (
      select t.runner_id, 0 as share, t.n
      from unnest(${runners}::text[]) with ordinality as t (runner_id, n)
      join runners r on r.id = t.runner_id
      cross join demands d
      where ${isAble(db)}
    ),
    ${locked(db)},
    -- An object finds its keys by halving; a join would compare each with each.
    seats as materialized (
      select coalesce(jsonb_object_agg(runner_id, true), '{}') as allowed, null::text[] as runners
      from open
    ),
    next as materialized (
      select q.run_id, q.is_resume, q.priority, q.position, p.runner_id, p.slots
      from ${unnest(db, 'p', pairs, { runId: 'text', runnerId: 'text', slots: 'int' })}
      join run_queue q on ${foundBy(db, db`q.run_id`, db`p.run_id`)}
      where ${onlyFilters(db, db`q.pool_id = ${poolId}`)} and (select allowed from seats) ? p.runner_id
      for update of q skip locked
    ),
    ${give(db, offerMs)}
    select * from answer`
  return withInputs(db, rows)
}
