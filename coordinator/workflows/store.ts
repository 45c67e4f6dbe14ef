import type { OrgId, PoolId, VersionId, WorkflowId, WorkflowRef } from '@windlass/shared/ids.ts'
import type { Descriptor } from '@windlass/shared/model/descriptor.ts'
import { onlyFilters } from '../db/by-key.ts'
import type { Db, Sql, Tx } from '../db/client.ts'

/** For so long a deleted workflow can be restored. */
export const RESTORE_MS = 30 * 86_400_000

export type JsonSchema = Record<string, unknown>

export interface WorkflowRow {
  id: WorkflowId
  org: string
  slug: string
  name: string
  description: string
  version: number
  pool: Descriptor['pool']
  process: Descriptor['process']
  createdAt: Date
  updatedAt: Date
  disabledAt: Date | null
  disabledBy: string | null
  deletedAt: Date | null
}

/** The workflow `w` by its id or its slug, which is never taken for an id: it has no underscore. */
const isMeant = (sql: Sql, orgId: OrgId, ref: WorkflowRef) =>
  ref.includes('_')
    ? sql`w.id = ${ref} and ${onlyFilters(sql, sql`w.org_id = ${orgId}`)}`
    : sql`w.org_id = ${orgId} and w.slug = ${ref}`

const workflows = (sql: Sql) => sql`
  select w.id, o.slug as org, w.slug, w.name, w.description, w.version, v.descriptor -> 'pool' as pool,
         v.descriptor -> 'process' as process, w.created_at, w.updated_at,
         w.disabled_at, w.disabled_by, w.deleted_at
  from workflows w
  join orgs o on o.id = w.org_id
  join workflow_versions v on v.workflow_id = w.id and v.version = w.version`

export async function find(sql: Sql, orgId: OrgId, ref: WorkflowRef): Promise<WorkflowRow | undefined> {
  const [row] = await sql<WorkflowRow[]>`
    ${workflows(sql)}
    where ${isMeant(sql, orgId, ref)} and w.deleted_at is null`
  return row
}

/** By its id also one that is deleted, until it can no longer be restored; a slug names none of these. */
export async function findEvenDeleted(sql: Sql, orgId: OrgId, ref: WorkflowRef): Promise<WorkflowRow | undefined> {
  const [row] = await sql<WorkflowRow[]>`
    ${workflows(sql)}
    where ${isMeant(sql, orgId, ref)} and ${ref.includes('_') ? sql`w.purged_at is null` : sql`w.deleted_at is null`}`
  return row
}

export interface WorkflowPage {
  /** Whether the list is of those that are deleted and can be restored. */
  deleted: boolean
  before: string | undefined
  limit: number
}

export function list(db: Db, orgId: OrgId, page: WorkflowPage): Promise<WorkflowRow[]> {
  const isListed = page.deleted
    ? db`w.deleted_at > now() - ${RESTORE_MS} * interval '1 millisecond' and w.purged_at is null`
    : db`w.deleted_at is null`
  return db<WorkflowRow[]>`
    ${workflows(db)}
    where w.org_id = ${orgId} and ${isListed}
    ${page.before ? db`and w.id < ${page.before}` : db``}
    order by w.id desc
    limit ${page.limit}`
}

export interface NewWorkflow {
  id: WorkflowId
  orgId: OrgId
  slug: string
  name: string
  description: string
}

/** False: the org has a workflow of this slug. */
export async function insert(tx: Tx, w: NewWorkflow): Promise<boolean> {
  const rows = await tx`
    insert into workflows (id, org_id, slug, name, description, version)
    values (${w.id}, ${w.orgId}, ${w.slug}, ${w.name}, ${w.description}, 1)
    on conflict (org_id, slug) where deleted_at is null do nothing
    returning id`
  return rows.length > 0
}

/** Number of the next version. For whoever holds the lock of the row, which puts two deploys one after the other. */
export async function nextVersion(tx: Tx, orgId: OrgId, id: WorkflowId): Promise<number> {
  const [row] = await tx<[{ version: number }]>`
    select max(version) + 1 as version
    from workflow_versions
    where workflow_id = ${id} and org_id = ${orgId}`
  return row.version
}

export type LockedWorkflow = Pick<WorkflowRow, 'id' | 'slug' | 'name' | 'version' | 'disabledAt'>

export async function lock(tx: Tx, orgId: OrgId, ref: WorkflowRef): Promise<LockedWorkflow | undefined> {
  const [row] = await tx<LockedWorkflow[]>`
    select w.id, w.slug, w.name, w.version, w.disabled_at
    from workflows w
    where ${isMeant(tx, orgId, ref)} and w.deleted_at is null
    for update`
  return row
}

export interface NewVersion {
  id: VersionId
  orgId: OrgId
  workflowId: WorkflowId
  version: number
  descriptor: Descriptor
  inputSchema: JsonSchema
  outputSchema: JsonSchema
  warnings: string[]
  bundleDigest: string
  bundleBytes: number
  sourceDigest: string
  createdBy: string
}

export async function insertVersion(tx: Tx, v: NewVersion): Promise<void> {
  const json = (value: object) => tx.json(value as Parameters<Tx['json']>[0])
  await tx`
    insert into workflow_versions (id, org_id, workflow_id, version, descriptor, input_schema, output_schema, warnings,
                                   bundle_digest, bundle_bytes, source_digest, created_by)
    values (${v.id}, ${v.orgId}, ${v.workflowId}, ${v.version}, ${json(v.descriptor)}, ${json(v.inputSchema)}, ${json(v.outputSchema)},
            ${v.warnings}, ${v.bundleDigest}, ${v.bundleBytes}, ${v.sourceDigest}, ${v.createdBy})`
}

export interface VersionRow extends Omit<NewVersion, 'orgId'> {
  slug: string
  createdAt: Date
}

const versions = (sql: Sql) => sql`
  select v.id, v.workflow_id, w.slug, v.version, v.descriptor, v.input_schema, v.output_schema, v.warnings, v.bundle_digest,
         v.bundle_bytes, v.source_digest, v.created_by, v.created_at
  from workflow_versions v
  join workflows w on w.id = v.workflow_id`

export async function findVersion(
  sql: Sql,
  orgId: OrgId,
  id: WorkflowId,
  version: number,
): Promise<VersionRow | undefined> {
  const [row] = await sql<VersionRow[]>`
    ${versions(sql)}
    where v.org_id = ${orgId} and v.workflow_id = ${id} and v.version = ${version}::bigint`
  return row
}

/** Of the versions of a page: a descriptor and two schemas have 500 KB at most. */
export function sizesOf(
  db: Db,
  orgId: OrgId,
  id: WorkflowId,
  page: { before: number | undefined; limit: number },
): Promise<{ bytes: number }[]> {
  return db<{ bytes: number }[]>`
    select octet_length(v.descriptor::text) + octet_length(v.input_schema::text) + octet_length(v.output_schema::text)
             as bytes
    from workflow_versions v
    where v.org_id = ${orgId} and v.workflow_id = ${id}
    ${page.before ? db`and v.version < ${page.before}` : db``}
    order by v.version desc
    limit ${page.limit}`
}

export function listVersions(
  db: Db,
  orgId: OrgId,
  id: WorkflowId,
  page: { before: number | undefined; limit: number },
): Promise<VersionRow[]> {
  return db<VersionRow[]>`
    ${versions(db)}
    where v.org_id = ${orgId} and v.workflow_id = ${id}
    ${page.before ? db`and v.version < ${page.before}` : db``}
    order by v.version desc
    limit ${page.limit}`
}

export interface TargetRow {
  versionId: VersionId
  poolId: PoolId | null
  poolName: string | null
  disabledAt: Date | null
  disabledBy: string | null
}

/** The version that a trigger means, and the pool that its descriptor names. */
export async function findTarget(
  db: Db,
  orgId: OrgId,
  ref: WorkflowRef,
  version: number | undefined,
): Promise<TargetRow | undefined> {
  const [row] = await db<TargetRow[]>`
    select v.id as version_id, p.id as pool_id, p.name as pool_name, w.disabled_at, w.disabled_by
    from workflows w
    join workflow_versions v on v.workflow_id = w.id and v.version = ${version ? db`${version}::bigint` : db`w.version`}
    left join runner_pools p on p.org_id = w.org_id and p.name = v.descriptor ->> 'pool' and p.deleted_at is null
    where ${isMeant(db, orgId, ref)} and w.deleted_at is null`
  return row
}

/** Those of these versions that there are. */
export async function versionsAmong(
  db: Db,
  orgId: OrgId,
  { workflow, numbers }: { workflow: WorkflowRef; numbers: readonly number[] },
): Promise<number[]> {
  const rows = await db<{ version: number }[]>`
    select v.version
    from workflows w
    join workflow_versions v on v.workflow_id = w.id and v.version = any(${[...numbers]}::bigint[])
    where ${isMeant(db, orgId, workflow)} and w.deleted_at is null`
  return rows.map(({ version }) => version)
}

export interface Executed {
  id: VersionId
  orgId: OrgId
  org: string
  workflowId: WorkflowId
  slug: string
  version: number
  bundleDigest: string
  bundleBytes: number
}

export interface ExecutionRow extends Executed {
  descriptor: Descriptor
  /** Length of its JSON. */
  descriptorBytes: number
  inputSchema: JsonSchema
  outputSchema: JsonSchema
}

export async function versionForExecution(sql: Sql, id: VersionId): Promise<ExecutionRow | undefined> {
  const [row] = await sql<ExecutionRow[]>`
    select v.id, v.org_id, o.slug as org, v.workflow_id, w.slug, v.version, v.descriptor, v.input_schema, v.output_schema,
           v.bundle_digest, v.bundle_bytes, octet_length(v.descriptor::text) as descriptor_bytes
    from workflow_versions v
    join workflows w on w.id = v.workflow_id
    join orgs o on o.id = v.org_id
    where v.id = ${id}`
  return row
}

/** Null also for what a descriptor lacks that was deployed by an earlier release. */
export interface TermsRow extends Executed, Pick<Descriptor, 'process' | 'timeoutMs' | 'cancelGraceMs' | 'retries'> {
  slots: number | null
  wallTimeoutMs: number | null
  queueTimeoutMs: number | null
  isLimited: boolean
}

/** Of those of these versions that there are. One look at each descriptor takes all: each `->` would take one. */
export function termsOf(sql: Sql, ids: readonly VersionId[]): PromiseLike<TermsRow[]> {
  return sql<TermsRow[]>`
    select v.id, v.org_id, o.slug as org, v.workflow_id, w.slug, v.version, v.bundle_digest, v.bundle_bytes,
           d.process, d.slots, d."timeoutMs", d."wallTimeoutMs", d."queueTimeoutMs", d."cancelGraceMs", d.retries,
           d.concurrency is not null or d.throttle is not null as is_limited
    from workflow_versions v
    join workflows w on w.id = v.workflow_id
    join orgs o on o.id = v.org_id
    cross join lateral json_to_record(v.descriptor) as d (
      process text, slots int, "timeoutMs" json, "wallTimeoutMs" json, "queueTimeoutMs" json, "cancelGraceMs" json,
      retries json, concurrency json, throttle json
    )
    where v.id = any(${[...ids]})`
}

/** True when some version of this org has this bundle: agents fetch bundles of their own org only. */
export async function ownsBundle(db: Db, orgId: OrgId, digest: string): Promise<boolean> {
  // The order lets an index be read up to the first: a bundle that was deployed often has as many versions.
  const rows = await db`
    select 1 from workflow_versions where bundle_digest = ${digest} and org_id = ${orgId} order by id limit 1`
  return rows.length > 0
}
