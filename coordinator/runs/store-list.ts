import type { OrgId, RunId, WorkflowId } from '@windlass/shared/ids.ts'
import { isFinal, type RunStatus, SUSPENDED } from '@windlass/shared/model/run.ts'
import type { Db, Sql } from '../db/client.ts'
import { idBounds, instant } from '../db/ids-at.ts'
import { type Fragment, newest, type Newest } from '../db/newest.ts'
import { newestUnfinished } from '../db/unfinished.ts'
import { onlyFilters, runById } from '../db/by-key.ts'
import type { RunRow } from '../engine/rules/run.ts'
import { readable } from './store.ts'

export interface RunFilter {
  orgId: OrgId
  status?: RunStatus[] | undefined
  workflowId?: WorkflowId | undefined
  environment?: string | undefined
  /** How they were started, or the id of what has started them. */
  trigger?: string | undefined
  tag?: string | undefined
  /** Whether somebody has to decide how it goes on. */
  blocked?: boolean | undefined
  /** True: only deleted ones. Else they are left out. */
  deleted?: boolean | undefined
  /** Whether no other run has called it. */
  root?: true | undefined
  /** Only runs that this one has called. */
  parentRunId?: RunId | undefined
  /** Milliseconds since the epoch; neither is counted in. */
  createdAfter?: number | undefined
  createdBefore?: number | undefined
  /** Only runs older than this one. */
  before?: string | undefined
  limit: number
}

/**
 * Newest first: ids sort by creation. The page is made of the runs alone, and what it is shown with is joined to it
 * afterwards: planned together, the whole list may be joined and sorted for the sake of one page.
 */
export async function list(db: Db, given: RunFilter): Promise<RunRow[]> {
  const asked = await prepare(db, given)
  return db<RunRow[]>`
    ${readable(db, db`(${page(db, asked)}) r`)}
    order by r.id desc`
}

/** Only the ids of the same runs. */
export async function listIds(db: Sql, given: RunFilter): Promise<RunId[]> {
  const asked = await prepare(db, given)
  const rows = await db<{ id: RunId }[]>`select r.id from (${page(db, asked)}) r order by r.id desc`
  return rows.map(({ id }) => id)
}

export interface Stretch {
  ids: RunId[]
  /** The oldest that was looked at, from which the next stretch goes on. */
  lookedTo: string | undefined
  isAll: boolean
}

/** The same, but it looks at so many runs at most and not until it has a page: among millions that takes minutes. */
export async function listStretch(db: Sql, given: RunFilter, most: number): Promise<Stretch> {
  const { f, start, range } = await prepare(db, given)
  const [row] = await db<[{ ids: RunId[]; lookedTo: string | null; looked: number }]>`
    with looked as materialized (
      select ${start.id} as id
      from ${start.from}
      where ${range.where}
      ${start.also ?? db``}
      order by ${range.order}
      limit ${most}
    ),
    found as materialized (
      select r.id
      from (select id from looked offset 0) l
      cross join lateral (${runById(db, db`l.id`)}) r
      where true
      ${others(db, f, start)}
      limit ${f.limit}
    )
    select array(select distinct id from found order by id desc) as ids, (select min(id) from looked) as looked_to,
           (select count(*)::int from looked) as looked`
  const isFull = row.ids.length >= f.limit
  const lookedTo = (isFull ? row.ids.at(-1) : row.lookedTo) ?? undefined
  return { ids: row.ids, lookedTo, isAll: !isFull && row.looked < most }
}

interface Asked {
  f: RunFilter
  start: Start
  range: ReturnType<typeof newest>
}

/** In an object, as a piece of a statement is a promise of its rows. */
async function prepare(db: Sql, given: RunFilter): Promise<Asked> {
  // What leads to runs of these statuses leads to the blocked ones: a run keeps the status in which it waited.
  const status = given.blocked ? (given.status ?? [...SUSPENDED]) : given.status
  const f = { ...given, status, deleted: given.deleted ?? false }
  const start = await startOf(db, f)
  const bounds = idBounds('run', { before: f.before, since: f.createdAfter, until: f.createdBefore })
  return { f, start, range: newest(db, { ...start, ...bounds }) }
}

function page(db: Sql, { f, start, range }: Asked): Fragment {
  return db`
    select r.*
    from ${start.from}
    ${start.isApart ? db`cross join lateral (${runById(db, start.id)}) r` : db``}
    where ${range.where}
    ${start.also ?? db``}
    ${start.counts ?? db``}
    ${others(db, f, start)}
    order by ${range.order}
    limit ${f.limit}`
}

/** The filters for which the start does not stand. */
function others(sql: Sql, f: RunFilter, { stands }: Start): Fragment {
  const conditions = filters(sql, f).filter(([name]) => !stands.includes(name))
  return conditions.reduce((all, [, condition]) => sql`${all} and ${condition}`, sql``)
}

interface Start extends Omit<Newest, 'after' | 'before'> {
  /** For these filters. */
  stands: readonly (keyof RunFilter)[]
  from: Fragment
  /** Whether this list is kept apart from the runs. */
  isApart?: true
  /** What the condition of an index wants to hear. */
  also?: Fragment
  /** Of what stands there twice, the one that counts. */
  counts?: Fragment
}

const isId = (trigger: string) => trigger.includes('_')

/** What leads to the runs: reading in its order ends with the page, however rare they are among the others. */
async function startOf(sql: Sql, f: RunFilter): Promise<Start> {
  const { status } = f
  const named = startOfNamed(sql, f)
  if (!status || status.includes('completed')) return named ?? startOfOrg(sql, f)
  // A tag or a trigger that very many runs have leads to as many that are completed.
  return named && (named.isNarrow || (await isShort(sql, named))) ? named : startOfStatus(sql, f, status)
}

/** A list that is as long is read to its end in a tenth of a second. */
const SHORT = 10_000

async function isShort(sql: Sql, start: Start): Promise<boolean> {
  const { where, order } = newest(sql, start)
  const [{ isShort: short }] = await sql<[{ isShort: boolean }]>`
    select count(*) < ${SHORT}::int as is_short
    from (select from ${start.from} where ${where} ${start.also ?? sql``} order by ${order} limit ${SHORT}) l`
  return short
}

/** Where the filter names something that has a list of its runs. Narrow: few have it, or nothing else leads there. */
function startOfNamed(sql: Sql, f: RunFilter): (Start & { isNarrow?: true }) | undefined {
  const { orgId, parentRunId, tag, trigger } = f
  const id = sql`r.id`
  if (f.deleted) {
    const [from, columns] = [sql`runs_deleted d`, [sql`d.org_id`]]
    const stands = ['orgId', 'deleted'] as const
    return { stands, from, isApart: true, columns, values: [orgId], id: sql`d.run_id`, isNarrow: true }
  }
  const from = sql`runs r`
  if (parentRunId !== undefined) {
    const also = sql`and r.parent_run_id is not null`
    const columns = [sql`r.parent_run_id`]
    return { stands: ['parentRunId'], from, columns, values: [parentRunId], id, also, isNarrow: true }
  }
  if (tag !== undefined) {
    const columns = [sql`t.org_id`, sql`t.tag`]
    return { stands: ['tag'], from: sql`run_tags t`, isApart: true, columns, values: [orgId, tag], id: sql`t.run_id` }
  }
  if (trigger === undefined || !isId(trigger)) return undefined
  const also = sql`and r.trigger_kind in ('schedule', 'webhook', 'connection') and ${isOfOrg(sql, orgId, trigger)}`
  return { stands: ['trigger'], from, columns: [sql`r.trigger_id`], values: [trigger], id, also }
}

/** Whatever starts runs does so in one org. Looked up once: else all runs of another org are read and thrown away. */
function isOfOrg(sql: Sql, orgId: OrgId, trigger: string): Fragment {
  return sql`
    ${orgId} = (
      select first.org_id
      from runs first
      where (first.trigger_id, first.id) > (${trigger}, '') and (first.trigger_id, first.id) < (${trigger}, '~')
        and first.trigger_kind in ('schedule', 'webhook', 'connection')
      order by first.trigger_id, first.id
      limit 1
    )`
}

function startOfStatus(sql: Sql, { orgId }: RunFilter, status: readonly RunStatus[]): Start {
  const from = sql`(${notCompleted(sql, orgId, status)}) s`
  const counts = sql`and s.is_over = (r.finished_at is not null)`
  return { stands: ['orgId'], from, isApart: true, counts, columns: [sql`s.org_id`], values: [orgId], id: sql`s.id` }
}

function startOfOrg(sql: Sql, { orgId, workflowId, environment }: RunFilter): Start {
  const [from, id] = [sql`runs r`, sql`r.id`]
  if (workflowId !== undefined)
    return { stands: ['workflowId'], from, columns: [sql`r.workflow_id`], values: [workflowId], id }
  const org = { from, columns: [sql`r.org_id`], values: [orgId], id }
  if (environment === undefined) return { ...org, stands: ['orgId'] }
  return {
    ...org,
    stands: ['orgId', 'environment'],
    columns: [...org.columns, sql`r.environment`],
    values: [orgId, environment],
    also: sql`and r.environment is not null`,
  }
}

/**
 * The few runs among the many that are completed: unfinished ones, see `runs_remaining`, and those that have failed
 * or were cancelled. Some of the former are over by now; `is_over` says as what a run stands here.
 */
function notCompleted(sql: Sql, orgId: OrgId, status: readonly RunStatus[]): Fragment {
  const unfinished = sql`
    select org_id, id, false as is_over
    from (${newestUnfinished(sql, orgId)}) candidates`
  const over = sql`
    select org_id, run_id as id, true as is_over
    from runs_unsuccessful
    where status = any(${[...status]})
    order by org_id desc, run_id desc`
  if (!status.some(isFinal)) return unfinished
  return status.every(isFinal) ? over : sql`${unfinished} union all (${over})`
}

/** What is asked for, but for the page. */
function filters(sql: Sql, f: RunFilter): [keyof RunFilter, Fragment][] {
  const all: Partial<Record<keyof RunFilter, (value: never) => Fragment>> = {
    orgId: (value) => onlyFilters(sql, sql`r.org_id = ${value}`),
    root: () => sql`r.parent_run_id is null`,
    parentRunId: (value) => sql`r.parent_run_id = ${value}`,
    tag: (value) => sql`${value} = any(r.tags)`,
    workflowId: (value) => sql`r.workflow_id = ${value}`,
    environment: (value) => sql`r.environment = ${value}`,
    status: (value) => sql`r.status = any(${value})`,
    deleted: (value) => onlyFilters(sql, value ? sql`r.deleted_at is not null` : sql`r.deleted_at is null`),
    blocked: (value) => sql`(r.blocked is not null) = ${value}`,
    trigger: (value) => (isId(value) ? sql`r.trigger_id = ${value}` : sql`r.trigger_kind = ${value}`),
    // `is true`, or the planner takes the two for a narrow range and thinks that there is little to sort.
    createdAfter: (ms) => sql`(r.created_at >= ${instant(sql, ms + 1)}) is true`,
    createdBefore: (ms) => sql`(r.created_at < ${instant(sql, ms)}) is true`,
  }
  return Object.entries(all).flatMap(([name, condition]) => {
    const value = f[name as keyof RunFilter]
    return value === undefined ? [] : [[name, condition(value as never)] as [keyof RunFilter, Fragment]]
  })
}
