import type { OrgId } from '@windlass/shared/ids.ts'
import { onlyFilters } from '../db/by-key.ts'
import type { Db, Sql } from '../db/client.ts'
import { unnest } from '../db/unnest.ts'
import type { ConnectionRow, NamingRow, WantedRow, WebhookRow, WeighedRow } from './row.ts'

// Where deliveries come in. Senders name no org: their source is looked up first.

const webhooks = (sql: Sql) => sql`
  select h.id, h.org_id, h.workflow_id, w.slug, h.auth, v.descriptor -> 'webhook' as settings,
         h.created_at, h.rotated_at
  from webhooks h
  join workflows w on w.id = h.workflow_id and ${onlyFilters(sql, sql`w.deleted_at is null`)}
  join workflow_versions v on v.workflow_id = w.id and v.version = w.version`

/** Undefined also where its workflow is deleted. */
export async function findHook(sql: Sql, id: string): Promise<(WebhookRow & { now: Date }) | undefined> {
  const [row] = await sql<(WebhookRow & { now: Date })[]>`
    select found.*, clock_timestamp() as now
    from (${webhooks(sql)} where h.id = ${id}) found`
  return row
}

export async function webhookOf(sql: Sql, orgId: OrgId, workflowId: string): Promise<WebhookRow | undefined> {
  const [row] = await sql<WebhookRow[]>`
    ${webhooks(sql)}
    where h.workflow_id = ${workflowId} and ${onlyFilters(sql, sql`h.org_id = ${orgId}`)}`
  return row
}

export const connections = (sql: Sql) => sql`
  select c.id, c.org_id, o.slug as org, c.name, c.kind, c.scheme, c.environment, c.environment_id, c.enabled,
         c.created_at, c.created_by, c.rotated_at
  from connections c
  join orgs o on o.id = c.org_id`

export async function findInbound(sql: Sql, id: string): Promise<(ConnectionRow & { now: Date }) | undefined> {
  const [row] = await sql<(ConnectionRow & { now: Date })[]>`
    select found.*, clock_timestamp() as now
    from (${connections(sql)} where c.id = ${id}) found`
  return row
}

/** Orgs of webhooks and connections, in the order of their ids; undefined where there is none. */
export async function ownersOf(db: Db, ids: readonly string[]): Promise<(OrgId | undefined)[]> {
  const rows = await db<{ id: string; orgId: OrgId }[]>`
    select h.id, h.org_id
    from unnest(${[...ids]}::text[]) as asked (id)
    join webhooks h on h.id = asked.id
    join workflows w on w.id = h.workflow_id and ${onlyFilters(db, db`w.deleted_at is null`)}
    union all
    select c.id, c.org_id
    from unnest(${[...ids]}::text[]) as asked (id)
    join connections c on c.id = asked.id`
  const owners = new Map(rows.map(({ id, orgId }) => [id, orgId]))
  return ids.map((id) => owners.get(id))
}

/** Of connections by their names. */
type Names = readonly { orgId: OrgId; name: string }[]

/** How many workflows name a connection, `most` at most, and how many bytes say what these want of it. */
export function weighWanted(db: Db, names: Names, most: number): Promise<WeighedRow[]> {
  return db<WeighedRow[]>`
    select asked.org_id, asked.name, found.workflows, found.bytes
    from ${unnest(db, 'asked', names, { orgId: 'text', name: 'text' })}
    cross join lateral (
      select count(*)::int as workflows, coalesce(sum(own.bytes), 0)::int as bytes
      from (
        select sum(octet_length(c.filter::text) + octet_length(c.events::text)) as bytes
        from workflow_connections c
        join workflows w on w.id = c.workflow_id and ${onlyFilters(db, db`w.deleted_at is null`)}
        where c.org_id = asked.org_id and c.connection = asked.name
        group by c.workflow_id
        order by c.workflow_id
        limit ${most}
      ) own
    ) found`
}

/** Workflows that want something of a connection. */
export function workflowsNaming(db: Db, { orgId, name }: Names[number], most: number): Promise<NamingRow[]> {
  return db<NamingRow[]>`
    select c.workflow_id, w.slug
    from workflow_connections c
    join workflows w on w.id = c.workflow_id and ${onlyFilters(db, db`w.deleted_at is null`)}
    where c.org_id = ${orgId} and c.connection = ${name}
    group by c.workflow_id, w.slug
    order by c.workflow_id
    limit ${most}`
}

/** What workflows want of connections. */
export function wantedOf(db: Db, names: Names): Promise<(WantedRow & Names[number])[]> {
  return db<(WantedRow & Names[number])[]>`
    select c.org_id, c.connection as name, c.workflow_id, w.slug, c.events, c.filter, c.environment
    from ${unnest(db, 'asked', names, { orgId: 'text', name: 'text' })}
    join workflow_connections c on c.org_id = asked.org_id and c.connection = asked.name
    join workflows w on w.id = c.workflow_id and ${onlyFilters(db, db`w.deleted_at is null`)}
    order by c.org_id, c.connection, c.workflow_id, c.n`
}
