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
export function list(db: Db, given: RunFilter): Promise<RunRow[]> {
  return db<RunRow[]>`
    ${readable(db, db`(${page(db, given)}) r`)}
    order by r.id desc`
}

/** Only the ids of the same runs. */
export async function listIds(db: Sql, given: RunFilter): Promise<RunId[]> {
  const rows = await db<{ id: RunId }[]>`select r.id from (${page(db, given)}) r order by r.id desc`
  return rows.map(({ id }) => id)
}

function page(db: Sql, given: RunFilter): Fragment {
  // What leads to runs of these statuses leads to the blocked ones: a run keeps the status in which it waited.
  const status = given.blocked ? (given.status ?? [...SUSPENDED]) : given.status
  const f = { ...given, status, deleted: given.deleted ?? false }
  const start = startOf(db, f)
  const bounds = idBounds('run', { before: f.before, since: f.createdAfter, until: f.createdBefore })
  const { where, order } = newest(db, { ...start, ...bounds })
  const others = filters(db, f).filter(([name]) => !start.stands.includes(name))
  return db`
    select r.*
    from ${start.from ?? db`runs r`}
    where ${where}
    ${start.also ?? db``}
    ${others.reduce((list, [, condition]) => db`${list} and ${condition}`, db``)}
    order by ${order}
    limit ${f.limit}`
}

interface Start extends Omit<Newest, 'after' | 'before'> {
  /** For these filters. */
  stands: readonly (keyof RunFilter)[]
  /** Where the list is kept apart from the runs. */
  from?: Fragment
  /** What the condition of an index wants to hear. */
  also?: Fragment
}

/** What leads to the runs: reading in its order ends with the page, however rare they are among the others. */
const isId = (trigger: string) => trigger.includes('_')

function startOf(sql: Sql, f: RunFilter): Start {
  const { orgId, parentRunId, tag, status, workflowId, environment, trigger } = f
  const id = sql`r.id`
  if (f.deleted) {
    const from = sql`runs_deleted d cross join lateral (${runById(sql, sql`d.run_id`)}) r`
    return { stands: ['orgId', 'deleted'], from, columns: [sql`d.org_id`], values: [orgId], id: sql`d.run_id` }
  }
  if (parentRunId !== undefined) {
    const also = sql`and r.parent_run_id is not null`
    return { stands: ['parentRunId'], columns: [sql`r.parent_run_id`], values: [parentRunId], id, also }
  }
  if (tag !== undefined) {
    const from = sql`run_tags t cross join lateral (${runById(sql, sql`t.run_id`)}) r`
    return { stands: ['tag'], from, columns: [sql`t.org_id`, sql`t.tag`], values: [orgId, tag], id: sql`t.run_id` }
  }
  if (trigger !== undefined && isId(trigger)) {
    const also = sql`and r.trigger_kind in ('schedule', 'webhook', 'connection')`
    return { stands: ['trigger'], columns: [sql`r.trigger_id`], values: [trigger], id, also }
  }
  if (status && !status.includes('completed')) {
    const from = sql`(${notCompleted(sql, orgId, status)}) s cross join lateral (${runById(sql, sql`s.id`)}) r`
    const also = sql`and s.is_over = (r.finished_at is not null)`
    return { stands: ['orgId'], from, also, columns: [sql`s.org_id`], values: [orgId], id: sql`s.id` }
  }
  if (workflowId !== undefined)
    return { stands: ['workflowId'], columns: [sql`r.workflow_id`], values: [workflowId], id }
  const org = { columns: [sql`r.org_id`], values: [orgId], id }
  if (environment === undefined) return { ...org, stands: ['orgId'] }
  return {
    stands: ['orgId', 'environment'],
    columns: [...org.columns, sql`r.environment`],
    values: [orgId, environment],
    id,
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
