import type { AuditId, OrgId } from '@windlass/shared/ids.ts'
import type { Db, Sql } from '../db/client.ts'
import { idBounds, instant } from '../db/ids-at.ts'
import { type Fragment, newest, type Newest } from '../db/newest.ts'
import type { AuditRow, Author, Change } from './row.ts'

export async function insert(sql: Sql, entries: readonly (Change & { id: AuditId; by: Author })[]): Promise<void> {
  const by = entries.map((entry) => entry.by)
  const targets = entries.map(({ target }) => target)
  const json = (values: (object | null | undefined)[]) => values.map((value) => (value ? JSON.stringify(value) : null))
  await sql`
    insert into audit_log
      (id, org_id, actor_kind, actor_id, actor_name, via, request_id, action, target_type, target_id, target_name, before, after)
    select e.id, e.org_id, e.actor_kind, e.actor_id, e.actor_name, e.via, e.request_id, e.action,
           e.target_type, e.target_id, e.target_name, e.before::json, e.after::json
    from unnest(
      ${entries.map(({ id }) => id)}::text[], ${by.map(({ orgId }) => orgId)}::text[],
      ${by.map(({ kind }) => kind)}::text[], ${by.map(({ id }) => id)}::text[], ${by.map(({ name }) => name)}::text[],
      ${by.map(({ via }) => via)}::text[], ${by.map(({ requestId }) => requestId)}::text[],
      ${entries.map(({ action }) => action)}::text[],
      ${targets.map(({ type }) => type)}::text[], ${targets.map(({ id }) => id)}::text[],
      ${targets.map(({ name }) => name ?? null)}::text[],
      ${json(entries.map(({ before }) => before))}::text[], ${json(entries.map(({ after }) => after))}::text[]
    ) as e (id, org_id, actor_kind, actor_id, actor_name, via, request_id, action,
            target_type, target_id, target_name, before, after)`
}

export interface AuditFilter {
  orgId: OrgId
  actor?: string | undefined
  actions?: ActionFilter | undefined
  target?: string | undefined
  /** Milliseconds since the epoch; neither is counted in. */
  createdAfter?: number | undefined
  createdBefore?: number | undefined
  /** Only entries older than this one. */
  before?: string | undefined
  limit: number
}

/** What stands before the dot of an operation is its group. */
export interface ActionFilter {
  exact: readonly string[]
  wholeGroups: readonly string[]
  /** Of all of them, each once. */
  groups: readonly string[]
}

/** Newest first: ids sort by creation. Each filter has an index of its own, so that what is rare is found among what is common. */
export function list(db: Db, f: AuditFilter): Promise<AuditRow[]> {
  const columns = db`
    a.id, a.at, a.actor_kind, a.actor_id, a.actor_name, a.via, a.request_id, a.action, a.target_type, a.target_id,
    a.target_name, a.before, a.after`
  return db<AuditRow[]>`${merged(db, f, columns)}`
}

/** How many bytes the values of each entry of the same list have. */
export function sizes(db: Db, f: AuditFilter): Promise<{ bytes: number }[]> {
  const bytes = db`
    a.id, coalesce(octet_length(a.before::text), 0) + coalesce(octet_length(a.after::text), 0) as bytes`
  return db<{ bytes: number }[]>`${merged(db, f, bytes)}`
}

function merged(sql: Sql, f: AuditFilter, columns: Fragment): Fragment {
  if (!f.actions) return page(sql, f, columns)
  return sql`
    select found.*
    from unnest(${[...f.actions.groups]}::text[]) as g (name)
    cross join lateral (${page(sql, f, columns)}) found
    order by found.id desc
    limit ${f.limit}`
}

type ChangeOfOrg = Pick<AuditRow, 'before' | 'after'> & { orgId: OrgId }

/** Of all orgs, for whoever keeps the instance. */
export function changesBy(sql: Sql, action: string): Promise<ChangeOfOrg[]> {
  return sql<ChangeOfOrg[]>`
    select a.org_id, a.before, a.after
    from orgs o
    join audit_log a on a.org_id = o.id and split_part(a.action, '.', 1) = split_part(${action}, '.', 1)
    where a.action = ${action}`
}

function page(sql: Sql, f: AuditFilter, columns: Fragment): Fragment {
  const { where, order } = newest(sql, {
    ...startOf(sql, f),
    id: sql`a.id`,
    ...idBounds('aud', { before: f.before, since: f.createdAfter, until: f.createdBefore }),
  })
  return sql`
    select ${columns}
    from audit_log a
    where ${where}
    ${f.actions ? among(sql, f, f.actions) : sql``}
    ${f.actor === undefined || f.target === undefined ? sql`` : sql`and a.actor_id = ${f.actor}`}
    ${f.createdAfter === undefined ? sql`` : sql`and (a.at >= ${instant(sql, f.createdAfter + 1)}) is true`}
    ${f.createdBefore === undefined ? sql`` : sql`and (a.at < ${instant(sql, f.createdBefore)}) is true`}
    order by ${order}
    limit ${f.limit}`
}

/** The index to read. What a thing has been through is less than what somebody has done. */
function startOf(sql: Sql, { orgId, target, actor, actions }: AuditFilter): Pick<Newest, 'columns' | 'values'> {
  const org = sql`a.org_id`
  if (target !== undefined) return { columns: [org, sql`a.target_id`], values: [orgId, target] }
  if (actor !== undefined) return { columns: [org, sql`a.actor_id`], values: [orgId, actor] }
  if (actions) return { columns: [org, sql`split_part(a.action, '.', 1)`], values: [orgId, sql`g.name`] }
  return { columns: [org], values: [orgId] }
}

/** What is to be found of the group `g`. */
function among(sql: Sql, f: AuditFilter, { exact, wholeGroups }: ActionFilter) {
  const isAsked = sql`and (a.action = any(${[...exact]}) or g.name = any(${[...wholeGroups]}))`
  // Else the index has led to the group already, and the planner would count it twice.
  const wantsGroup = f.actor !== undefined || f.target !== undefined
  return wantsGroup ? sql`${isAsked} and starts_with(a.action, g.name || '.')` : isAsked
}
