import type { EnvironmentId, OrgId } from '@windlass/shared/ids.ts'
import type { Sql, Tx } from '../db/client.ts'
import { runById } from '../db/by-key.ts'
import { unfinishedOfEnvironment } from '../db/unfinished.ts'
import type { EntryRow, EnvironmentRow, Level } from './row.ts'

export interface NamePage {
  /** Only names behind this one. */
  after?: string | undefined
  limit: number
}

/** One after the other change what runs of an org are given: a set is made of all that stands there. */
export function lockOrg(tx: Tx, orgId: OrgId): PromiseLike<unknown> {
  // Not `for update`: rows that refer to the org, such as those of the audit log, would have to wait.
  return tx`select 1 from orgs where id = ${orgId} for no key update`
}

export function listEnvironments(sql: Sql, orgId: OrgId, { after = '', limit }: NamePage): Promise<EnvironmentRow[]> {
  return sql<EnvironmentRow[]>`
    select id, name, created_at
    from environments
    where org_id = ${orgId} and name > ${after}
    order by name
    limit ${limit}`
}

/** By its id or its name, which is never taken for an id: it has no underscore. */
export async function findEnvironment(sql: Sql, orgId: OrgId, ref: string): Promise<EnvironmentRow | undefined> {
  const [row] = await sql<EnvironmentRow[]>`
    select id, name, created_at
    from environments
    where org_id = ${orgId} and ${ref.includes('_') ? sql`id = ${ref}` : sql`name = ${ref}`}`
  return row
}

export async function countEnvironments(tx: Tx, orgId: OrgId): Promise<number> {
  const [row] = await tx<[{ count: number }]>`select count(*)::int as count from environments where org_id = ${orgId}`
  return row.count
}

/** Undefined: there is one of this name. */
export async function insertEnvironment(
  tx: Tx,
  { id, orgId, name }: { id: EnvironmentId; orgId: OrgId; name: string },
): Promise<EnvironmentRow | undefined> {
  const [row] = await tx<EnvironmentRow[]>`
    insert into environments (id, org_id, name)
    values (${id}, ${orgId}, ${name})
    on conflict (org_id, name) do nothing
    returning id, name, created_at`
  return row
}

/** With all that is set in it. Answers the names of that. */
export async function deleteEnvironment(
  tx: Tx,
  { orgId, environment }: Level,
): Promise<{ variables: string[]; secrets: string[] }> {
  await tx`delete from variable_heads where org_id = ${orgId} and environment = ${environment}`
  // In the order in which secrets are sealed anew, or the two would wait for each other in a circle.
  await tx`select from variables where org_id = ${orgId} and environment = ${environment} order by name for update`
  const rows = await tx<{ name: string; isSecret: boolean }[]>`
    delete from variables
    where org_id = ${orgId} and environment = ${environment}
    returning name, value is null as is_secret`
  await tx`delete from environments where org_id = ${orgId} and name = ${environment}`
  const names = (isSecret: boolean) => rows.filter((row) => row.isSecret === isSecret).map(({ name }) => name)
  return { variables: names(false).sort(), secrets: names(true).sort() }
}

/** Unfinished runs of an environment, counted up to `most`. Of finished ones only the youngest are looked at. */
export async function countUnfinished(tx: Tx, { orgId, environment }: Level, most: number): Promise<number> {
  const [row] = await tx<[{ count: number }]>`
    select count(*)::int as count
    from (
      select
      from (${unfinishedOfEnvironment(tx, orgId, environment)}) candidates
      cross join lateral (${runById(tx, tx`candidates.id`)}) r
      where r.environment = ${environment} and r.finished_at is null
      limit ${most}
    ) unfinished`
  return row.count
}

export function listEntries(
  sql: Sql,
  { orgId, environment }: Level,
  { kind, after = '', limit }: NamePage & { kind: 'variable' | 'secret' },
): Promise<EntryRow[]> {
  return sql<EntryRow[]>`
    select environment, name, value, updated_at, updated_by
    from variables
    where org_id = ${orgId} and environment = ${environment} and name > ${after}
      and ${kind === 'variable' ? sql`value is not null` : sql`sealed is not null`}
    order by name
    limit ${limit}`
}

export async function findEntry(tx: Tx, { orgId, environment }: Level, name: string): Promise<EntryRow | undefined> {
  const [row] = await tx<EntryRow[]>`
    select environment, name, value, updated_at, updated_by
    from variables
    where org_id = ${orgId} and environment = ${environment} and name = ${name}`
  return row
}

export interface NewEntry {
  name: string
  updatedBy: string
  /** The one or the other. */
  content: { value: string } | { sealed: string }
}

export async function putEntry(tx: Tx, { orgId, environment }: Level, entry: NewEntry): Promise<EntryRow> {
  const { name, updatedBy, content } = entry
  const value = 'value' in content ? content.value : null
  const sealed = 'sealed' in content ? content.sealed : null
  const [row] = await tx<[EntryRow]>`
    insert into variables (org_id, environment, name, value, sealed, updated_by)
    values (${orgId}, ${environment}, ${name}, ${value}, ${sealed}, ${updatedBy})
    on conflict (org_id, environment, name) do update
    set value = excluded.value, sealed = excluded.sealed, updated_at = now(), updated_by = excluded.updated_by
    returning environment, name, value, updated_at, updated_by`
  return row
}

export function removeEntry(tx: Tx, { orgId, environment }: Level, name: string): PromiseLike<unknown> {
  return tx`delete from variables where org_id = ${orgId} and environment = ${environment} and name = ${name}`
}

export interface LevelSize {
  names: number
  /** Of all names and values. */
  bytes: number
  /** Of the values of secrets alone. */
  secretBytes: number
}

/**
 * How much is set on a level. Of a sealed value 33 characters stand in front, and of each four of the others three
 * bytes are value and tag.
 */
export async function sizeOf(tx: Tx, { orgId, environment }: Level): Promise<LevelSize> {
  const [row] = await tx<[LevelSize]>`
    select count(*)::int as names,
           coalesce(sum(octet_length(name) + coalesce(octet_length(value), octet_length(sealed) * 3 / 4)), 0)::int as bytes,
           coalesce(sum((octet_length(sealed) - 33) * 3 / 4 - 16), 0)::int as secret_bytes
    from variables
    where org_id = ${orgId} and environment = ${environment}`
  return row
}
