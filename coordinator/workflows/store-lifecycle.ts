import type { OrgId, WorkflowId, WorkflowRef } from '@windlass/shared/ids.ts'
import { runById } from '../db/by-key.ts'
import type { Db, Tx } from '../db/client.ts'
import { newestUnfinished } from '../db/unfinished.ts'
import { RESTORE_MS } from './store.ts'

interface Which {
  orgId: OrgId
  workflowId: WorkflowId
}

export interface Current extends Which {
  version: number
  name: string
  description: string
}

export async function setCurrent(tx: Tx, c: Current): Promise<void> {
  await tx`
    update workflows
    set version = ${c.version}, name = ${c.name}, description = ${c.description}, updated_at = now()
    where id = ${c.workflowId} and org_id = ${c.orgId}`
}

export async function setDisabled(tx: Tx, { orgId, workflowId }: Which, by: string): Promise<void> {
  await tx`
    update workflows
    set disabled_at = now(), disabled_by = ${by}
    where id = ${workflowId} and org_id = ${orgId}`
}

export async function setEnabled(tx: Tx, { orgId, workflowId }: Which): Promise<void> {
  await tx`
    update workflows
    set disabled_at = null, disabled_by = null
    where id = ${workflowId} and org_id = ${orgId}`
}

export async function setDeleted(tx: Tx, { orgId, workflowId }: Which, by: string): Promise<void> {
  await tx`
    update workflows
    set deleted_at = now(), deleted_by = ${by}
    where id = ${workflowId} and org_id = ${orgId}`
}

/** Fails when another workflow has the slug: the unique index has the last word among those who want it at once. */
export async function setRestored(tx: Tx, { orgId, workflowId }: Which, slug: string): Promise<void> {
  await tx`
    update workflows
    set deleted_at = null, deleted_by = null, slug = ${slug}, updated_at = now()
    where id = ${workflowId} and org_id = ${orgId}`
}

const restorable = (tx: Tx) => tx`w.deleted_at > now() - ${RESTORE_MS} * interval '1 millisecond'`

/** By its id; by its slug the one that was deleted last. */
export async function lockDeleted(tx: Tx, orgId: OrgId, ref: WorkflowRef) {
  const [row] = await tx<{ id: WorkflowId; slug: string }[]>`
    select w.id, w.slug
    from workflows w
    where w.org_id = ${orgId} and ${ref.includes('_') ? tx`w.id = ${ref}` : tx`w.slug = ${ref}`}
      and w.deleted_at is not null and w.purged_at is null and ${restorable(tx)}
    order by w.deleted_at desc
    limit 1
    for update`
  return row
}

export interface Expired extends Which {
  slug: string
}

const expired = (db: Db) => db`
  deleted_at is not null and purged_at is null and deleted_at <= now() - ${RESTORE_MS} * interval '1 millisecond'`

/** Orgs that have workflows which can no longer be restored. */
export async function orgsWithExpired(db: Db): Promise<OrgId[]> {
  const rows = await db<{ orgId: OrgId }[]>`select distinct org_id from workflows where ${expired(db)}`
  return rows.map(({ orgId }) => orgId)
}

/** Those of an org without unfinished runs, the longest deleted first. All of its unfinished runs are looked at. */
export function listPurgeable(db: Db, orgId: OrgId, limit: number): Promise<Expired[]> {
  return db<Expired[]>`
    with used as materialized (
      select distinct r.workflow_id
      from (${newestUnfinished(db, orgId)}) candidates
      cross join lateral (${runById(db, db`candidates.id`)}) r
      where candidates.org_id = ${orgId} and r.finished_at is null
    )
    select org_id, id as workflow_id, slug
    from workflows
    where org_id = ${orgId} and ${expired(db)} and id not in (select workflow_id from used)
    order by deleted_at
    limit ${limit}`
}

/** False: it is gone, or somebody else is at it. */
export async function lockExpired(tx: Tx, { orgId, workflowId }: Which): Promise<boolean> {
  const rows = await tx`
    select 1
    from workflows
    where id = ${workflowId} and org_id = ${orgId} and deleted_at is not null and purged_at is null
    for update skip locked`
  return rows.length > 0
}

export async function hasRuns(tx: Tx, { workflowId }: Which): Promise<boolean> {
  const rows = await tx`select 1 from runs where workflow_id = ${workflowId} limit 1`
  return rows.length > 0
}

export async function setPurged(tx: Tx, { orgId, workflowId }: Which): Promise<void> {
  await tx`update workflows set purged_at = now() where id = ${workflowId} and org_id = ${orgId}`
}

export async function forget(tx: Tx, { orgId, workflowId }: Which): Promise<void> {
  await tx`delete from workflow_versions where workflow_id = ${workflowId} and org_id = ${orgId}`
  await tx`delete from workflows where id = ${workflowId} and org_id = ${orgId}`
}
