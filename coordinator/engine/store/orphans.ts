import type { RunId } from '@windlass/shared/ids.ts'
import type { RunStatus } from '@windlass/shared/model/run.ts'
import type { Sql, Tx } from '../../db/client.ts'
import type { FindingKind, OrphanKind } from '../rules/orphan.ts'
import type { ProcessState } from '../rules/run.ts'
import { takenOf } from './concurrency.ts'

// The invariant spans the tables of several nouns, and only a look at all of them in one statement, that is in one snapshot,
// can tell an orphan from a run on its way between two of them. So its SQL stands here, not in the stores of those nouns.

export interface Finding {
  runId: RunId
  kind: FindingKind
  /** Number of the entry in the journal, 0 where it is about the run. */
  n: number
  /** Null: there is no such run. */
  status: RunStatus | null
  place: ProcessState | null
  attempt: number | null
  epoch: number | null
}

/** Where to look: at the next page of a walk in the order of the runs' ids, or at these runs again. */
export type Scope = { after: string; limit: number } | { ids: readonly string[] }

export interface Page {
  findings: Finding[]
  /** Where to go on; null: that was the last page. */
  last: string | null
}

/** Only one coordinator at a time sweeps, until the end of this transaction, which is idle while runs are repaired. */
export async function tryLead(tx: Tx): Promise<boolean> {
  await tx`set local idle_in_transaction_session_timeout = '60s'`
  // It lasts as long as all pages take. Servers before PostgreSQL 17 do not know it.
  await tx`
    select set_config('transaction_timeout', '0', true)
    where current_setting('transaction_timeout', true) is not null`
  const [row] = await tx<
    [{ leads: boolean }]
  >`select pg_try_advisory_xact_lock(hashtext('windlass sweep of runs')) as leads`
  return row.leads
}

/** Rows that pages are made of, with ties: all rows of a run come together. */
function scoped(sql: Sql, column: string, scope: Scope) {
  if ('ids' in scope) return sql`and ${sql(column)} = any(${[...scope.ids]})`
  return sql`and ${sql(column)} > ${scope.after} order by ${sql(column)} fetch first ${scope.limit} rows with ties`
}

const UNDELIVERED = (sql: Sql) => sql`
  select from journal j
  where j.run_id = r.id and j.attempt = r.attempt and j.completion is not null and j.delivered is null`

const OPEN_WAIT = (sql: Sql) => sql`
  select from journal j
  where j.run_id = r.id and j.attempt = r.attempt and j.state = 'open' and j.kind <> 'step'`

/** A page ends with the run whose journal reaches this in all: 1,200,000 open entries in one statement took it 16 s. */
const ENTRIES_OF_PAGE = 50_000

/** Unfinished runs without exactly one owner, and what they wait for though nothing will ever bring it. */
export async function unowned(sql: Sql, scope: Scope): Promise<Page> {
  const [row] = await sql<[PageRow]>`
    with looked_up as materialized (
      select c.id, coalesce(sum(r.entries) over before, 0) as entries_before
      from (${candidates(sql, scope)}) c
      left join runs r on r.id = c.id
      window before as (order by c.id rows between unbounded preceding and 1 preceding)
    ),
    candidates as (
      select id
      from looked_up
      where ${'ids' in scope} or entries_before < ${ENTRIES_OF_PAGE}
    ),
    page as materialized (
      select r.id, r.status, r.place, r.attempt, r.epoch, r.blocked
      from candidates c
      join runs r on r.id = c.id
      where r.finished_at is null
    ),
    owners as (
      select r.*,
             -- A claim of a row of the wrong sort gives nobody the run.
             exists (select from run_queue q where q.run_id = r.id and q.is_resume = (r.status <> 'queued'))::int as in_queue,
             exists (select from timers t where t.run_id = r.id and t.kind = 'enqueue')::int as enters_later,
             exists (select from concurrency_waiters w where w.run_id = r.id)::int as waits_to_enter,
             exists (select from placements p where p.run_id = r.id and p.epoch = r.epoch) as is_placed
      from page r
    ),
    runs_found as (
      select r.id, 0 as n, case
        when r.status = 'queued' then case in_queue + enters_later + waits_to_enter
          when 0 then 'queued_nowhere'
          when 1 then null
          else 'queued_twice'
        end
        when r.status in ('pending', 'running', 'cancelling') or r.place is not null
          then case when r.place is null or not is_placed then 'process_missing' end
        when r.blocked is not null or in_queue + enters_later > 0 then null
        when exists (${UNDELIVERED(sql)}) then 'wake_missing'
        when not exists (${OPEN_WAIT(sql)}) then 'waits_for_nothing'
      end as kind
      from owners r
    ),
    waits_found as (
      select r.id, j.n, case
        when j.kind = 'child' and c.id is null then 'child_missing'
        when j.kind = 'child' and c.finished_at is not null then 'child_ended'
        when j.kind = 'input' and i.status is distinct from 'open' then 'question_missing'
        when (j.kind = 'sleep' or i.due_at is not null) and t.run_id is null then 'timer_missing'
      end as kind
      from page r
      -- Kept apart, or the planner begins with all that is open anywhere, in each partition.
      cross join lateral (
        select run_id, n, kind, child_run_id
        from journal
        where run_id = r.id and state = 'open' and kind <> 'step'
        offset 0
      ) j
      left join runs c on c.id = j.child_run_id
      left join inputs i on i.run_id = j.run_id and i.n = j.n
      left join timers t on t.run_id = j.run_id and t.kind = j.kind and t.n = j.n
    ),
    -- Materialized, or all of it would be worked out anew for each run of the page.
    found as materialized (
      select * from runs_found where kind is not null
      union all
      select * from waits_found where kind is not null
    )
    -- A page that was cut short by its entries is not the last one.
    select case when exists (select from looked_up where id > (select max(id) from candidates))
             then ${'ids' in scope ? 0 : scope.limit}::int
             else (select count(*)::int from looked_up)
           end as size,
           (select max(id) from candidates) as last,
           (select ${asFindings(sql, sql`f.id`)} from found f join page r on r.id = f.id) as findings`
  return pageOf(row, scope)
}

/** Runs that may be unfinished, in the order of their ids: those that remain from before the mark, then all behind it. */
function candidates(sql: Sql, scope: Scope) {
  if ('ids' in scope) return sql`select unnest(${[...scope.ids]}::text[]) as id`
  const { after, limit } = scope
  return sql`
    (select run_id as id from runs_remaining where run_id > ${after} order by run_id limit ${limit})
    union all
    (select id
     from runs
     where id > greatest(${after}, (select run_id from sweep_mark)) and finished_at is null
     order by id
     limit ${limit})
    order by id
    limit ${limit}`
}

interface PageRow {
  findings: Finding[] | null
  size: number
  last: string | null
}

const pageColumns = (sql: Sql) => sql`(select count(*)::int from page) as size, (select max(id) from page) as last`

/** Columns' names inside JSON stay as they are written, so they are written as they are read. */
const asFindings = (sql: Sql, runId: ReturnType<Sql>) => sql`
  json_agg(json_build_object(
    'runId', ${runId}, 'kind', f.kind, 'n', f.n, 'status', r.status, 'place', r.place, 'attempt', r.attempt, 'epoch', r.epoch))`

function pageOf({ findings, size, last }: PageRow, scope: Scope): Page {
  const isLast = 'ids' in scope || size < scope.limit
  return { findings: findings ?? [], last: isLast ? null : last }
}

interface StrayRule {
  kind: OrphanKind
  rows(sql: Sql): ReturnType<Sql>
  /** Of a row `s` whose run `r`, if there is one, has not finished. */
  isStray(sql: Sql): ReturnType<Sql>
}

/** Rows that belong to a run, and what makes them superfluous besides that the run is over. */
const STRAYS: readonly StrayRule[] = [
  {
    kind: 'stray_queue_row',
    rows: (sql) => sql`select run_id as id, 0 as n, is_resume::text as what from run_queue`,
    isStray: (sql) => sql`r.status in ('pending', 'running', 'cancelling')
      or (r.status <> 'queued') <> s.what::boolean
      or (r.status <> 'queued' and (r.place is not null or r.blocked is not null))`,
  },
  {
    kind: 'stray_placement',
    rows: (sql) => sql`select run_id as id, 0 as n, '' as what from placements`,
    isStray: (sql) => sql`r.status = 'queued'
      or (r.status in ('sleeping', 'awaiting_input', 'waiting_for_child') and r.place is null)`,
  },
  {
    kind: 'stray_timer',
    rows: (sql) => sql`select run_id as id, n, kind as what from timers`,
    isStray: (sql) => sql`
      (s.what in ('sleep', 'input') and not exists (
        select from journal j where j.run_id = s.id and j.n = s.n and j.state = 'open'))
      or (s.what = 'enqueue' and r.status <> 'queued' and (r.status in ('pending', 'running', 'cancelling') or r.place is not null))`,
  },
  {
    kind: 'stray_question',
    rows: (sql) => sql`select run_id as id, n, '' as what from inputs where status = 'open'`,
    isStray: (sql) => sql`not exists (select from journal j where j.run_id = s.id and j.n = s.n and j.state = 'open')`,
  },
  {
    kind: 'stray_slot',
    rows: (sql) => sql`select run_id as id, 0 as n, '' as what from concurrency_slots`,
    isStray: (sql) => sql`r.status in ('sleeping', 'awaiting_input', 'waiting_for_child')`,
  },
  {
    kind: 'stray_waiter',
    rows: (sql) => sql`select run_id as id, 0 as n, '' as what from concurrency_waiters`,
    isStray: (sql) => sql`r.status <> 'queued'`,
  },
]

export const STRAY_KINDS = STRAYS.map((rule) => rule.kind)

const ruleOf = (kind: OrphanKind) => STRAYS.find((one) => one.kind === kind)!

const isStray = (sql: Sql, rule: StrayRule) => sql`(r.id is null or r.finished_at is not null or ${rule.isStray(sql)})`

export async function strays(sql: Sql, kind: OrphanKind, scope: Scope): Promise<Page> {
  const rule = ruleOf(kind)
  const [row] = await sql<[PageRow]>`
    with page as (
      select * from (${rule.rows(sql)}) rows
      where true
      ${scoped(sql, 'id', scope)}
    ),
    found as materialized (
      select s.id, s.n, ${kind} as kind
      from page s
      left join runs r on r.id = s.id
      where ${isStray(sql, rule)}
    )
    select ${pageColumns(sql)},
           (select ${asFindings(sql, sql`f.id`)} from found f left join runs r on r.id = f.id) as findings`
  return pageOf(row, scope)
}

/** Runs that wait for room in their group though there is some: whoever left it should have let them in. */
export async function forgottenWaiters(sql: Sql, scope: Scope): Promise<Page> {
  const [row] = await sql<[PageRow]>`
    with page as (
      select distinct on (group_key) run_id as id, group_key, slots
      from concurrency_waiters
      order by group_key, priority desc, position
    ),
    found as (
      select p.id, 0 as n, 'waiter_with_room' as kind
      from page p
      where ${takenOf(sql, sql`p.group_key`)} < p.slots
        -- A job lets it in.
        and not exists (select from concurrency_rest c where c.group_key = p.group_key)
        ${'ids' in scope ? sql`and p.id = any(${[...scope.ids]})` : sql``}
    )
    select ${pageColumns(sql)}, (select ${asFindings(sql, sql`f.id`)} from found f join runs r on r.id = f.id) as findings`
  return { findings: row.findings ?? [], last: null }
}

/** The timers among them: several of a run may have the same number, so a finding does not name one. */
export function strayTimers(tx: Tx, ids: readonly string[]) {
  const rule = ruleOf('stray_timer')
  return tx`
    select s.id as run_id, s.what as kind, s.n
    from (${rule.rows(tx)}) s
    left join runs r on r.id = s.id
    where s.id = any(${[...ids]}) and ${isStray(tx, rule)}`
}

/** Everything that is wrong with these runs. */
export async function orphansAmong(tx: Tx, ids: readonly string[]): Promise<Finding[]> {
  const { findings } = await unowned(tx, { ids })
  for (const kind of STRAY_KINDS) findings.push(...(await strays(tx, kind, { ids })).findings)
  findings.push(...(await forgottenWaiters(tx, { ids })).findings)
  return findings
}
