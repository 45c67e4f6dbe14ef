import { isFinal, RUN_STATUSES } from '@windlass/shared/model/run.ts'
import { IntakeState } from '@windlass/shared/model/runner.ts'
import { runById } from '../db/by-key.ts'
import type { Db, Sql } from '../db/client.ts'
import { unfinishedRuns } from '../db/unfinished.ts'
import type { ProcessState } from '../engine/rules/run.ts'

/** What the database says about all runs together. */
export interface Facts {
  runs: { status: string; place: ProcessState | null; count: number }[]
  queues: QueueFacts
  timersOverdue: number
  timersLagSeconds: number
  inputsOpen: number
  /** Of every state, also where there are none. */
  runners: { state: IntakeState; count: number }[]
  runnersQuarantined: number
  oldestSnapshotSeconds: number
}

/** Queues of the pools that have waiting runs or a runner. */
export interface QueueFacts {
  /** Of each org the longest, so that none hides those of another with many of its own. */
  listed: { org: string; pool: string; count: number; oldestSeconds: number }[]
  /** All others together. */
  rest: { pools: number; count: number; oldestSeconds: number }
}

type FactsRow = Omit<Facts, 'runs' | 'runners'> & { [Of in 'runs' | 'runners']: Facts[Of] | null }

/** Of all orgs: a scrape brings two figures of each. */
const MOST_QUEUES = 1000

/** Finished runs, which are nearly all, are not looked at, but for the youngest: see `sweep_mark` in 0003-runs.sql. */
export async function readFacts(db: Db): Promise<Facts> {
  const [row] = await db<[FactsRow]>`
    with recursive unfinished as (
      select status, place, count(*)::int as count
      from (
        select r.status, r.place
        from (${unfinishedRuns(db)}) candidates
        cross join lateral (${runById(db, db`candidates.id`)}) r
        where r.finished_at is null
      ) runs
      group by status, place
    ),
    ${queueSteps(db, MOST_QUEUES)},
    intakes as (
      select i.quarantined_until > now() as is_quarantined,
             case
               when i.state = 'draining' and not exists (select from placements p where p.runner_id = i.runner_id) then 'drained'
               else i.state
             end as state
      from runner_intake i
      join runners r on r.id = i.runner_id
      where r.deregistered_at is null
    ),
    by_state as (select state, count(*)::int as count from intakes group by state),
    -- Org by org, as the index of the timers has them: most of a million sleeping runs are not due.
    timer_orgs as (
      (select org_id from timers order by org_id limit 1)
      union all
      select (select t.org_id from timers t where t.org_id > o.org_id order by t.org_id limit 1)
      from timer_orgs o
      where o.org_id is not null
    ),
    overdue as (
      select coalesce(sum(due.count), 0)::int as count,
             coalesce(extract(epoch from now() - min(due.since)), 0)::float8 as lag
      from timer_orgs o
      cross join lateral (
        select count(*) as count, min(due_at) as since
        from timers
        where org_id = o.org_id and due_at <= now()
      ) due
      where o.org_id is not null
    )
    select (select json_agg(u) from unfinished u) as runs,
           json_build_object(
             'listed', (select coalesce(json_agg(l), '[]') from listed l),
             'rest', (select row_to_json(rest) from rest)
           ) as queues,
           overdue.count as timers_overdue,
           overdue.lag as timers_lag_seconds,
           (select count(*)::int from inputs where status = 'open') as inputs_open,
           (select json_agg(b) from by_state b) as runners,
           (select count(*)::int from intakes where is_quarantined) as runners_quarantined,
           (
             select coalesce(extract(epoch from clock_timestamp() - min(xact_start)), 0)::float8
             from pg_stat_activity
             where datname = current_database() and backend_xmin is not null and backend_type <> 'autovacuum worker'
               and pid <> pg_backend_pid()
           ) as oldest_snapshot_seconds
    from overdue`
  return { ...row, runs: withEmpty(row.runs ?? []), runners: inEachState(row.runners ?? []) }
}

/** Steps of a statement: `listed` and `rest`. */
function queueSteps(sql: Sql, most: number) {
  return sql`
    -- Pool by pool, as the index of the queue has them: pools without a queue, which may be many, are not looked at.
    queued_pools as (
      (select pool_id from run_queue order by pool_id limit 1)
      union all
      select (select q.pool_id from run_queue q where q.pool_id > p.pool_id order by q.pool_id limit 1)
      from queued_pools p
      where p.pool_id is not null
    ),
    queues as (
      select o.slug as org, p.name as pool, q.count, q.oldest_seconds,
             row_number() over (partition by p.org_id order by q.count desc, p.name) as rank_in_org
      from (
        select pool_id from queued_pools where pool_id is not null
        union
        select pool_id from runners where deregistered_at is null
      ) seen
      join runner_pools p on p.id = seen.pool_id
      join orgs o on o.id = p.org_id
      -- Counted for all at once, each pool would be compared with each that has something queued.
      cross join lateral (
        select count(*)::int as count,
               coalesce(extract(epoch from now() - min(entered_at)), 0)::float8 as oldest_seconds
        from run_queue
        where pool_id = p.id
      ) q
      where p.deleted_at is null
    ),
    ranked as (select *, row_number() over (order by rank_in_org, count desc, org) as rank from queues),
    listed as (
      select org, pool, count, oldest_seconds as "oldestSeconds" from ranked where rank <= ${most} order by rank
    ),
    rest as (
      select count(*)::int as pools, coalesce(sum(count), 0)::int as count,
             coalesce(max(oldest_seconds), 0) as "oldestSeconds"
      from ranked
      where rank > ${most}
    )`
}

/** A status that no run has is zero, not absent. */
function withEmpty(runs: Facts['runs']): Facts['runs'] {
  const seen = new Set(runs.map((run) => run.status))
  const unseen = RUN_STATUSES.filter((status) => !isFinal(status) && !seen.has(status))
  return [...runs, ...unseen.map((status) => ({ status, place: null, count: 0 }))]
}

function inEachState(runners: Facts['runners']): Facts['runners'] {
  const counts = new Map(runners.map(({ state, count }) => [state, count]))
  return IntakeState.options.map((state) => ({ state, count: counts.get(state) ?? 0 }))
}
