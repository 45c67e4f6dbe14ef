import type { OrgId, PoolId, PoolRef } from '@windlass/shared/ids.ts'
import type { Db, Sql, Tx } from '../db/client.ts'
import { unfinishedOfPool } from '../db/unfinished.ts'
import { runById } from '../db/by-key.ts'
import { isMeant } from './store.ts'

/**
 * Returns undefined when the org has a pool of this name. A deleted one comes back, under its old id: its finished runs
 * still name it, and runs that were queued in the moment of the deletion are waiting there.
 */
export async function insertPool(
  sql: Sql,
  pool: { id: PoolId; orgId: OrgId; name: string; settings: object },
): Promise<PoolId | undefined> {
  const [row] = await sql<{ id: PoolId }[]>`
    insert into runner_pools (id, org_id, name, settings)
    values (${pool.id}, ${pool.orgId}, ${pool.name}, ${JSON.stringify(pool.settings)}::text::json)
    on conflict (org_id, name) do update
    set settings = excluded.settings, created_at = now(), deleted_at = null
    where runner_pools.deleted_at is not null
    returning id`
  return row?.id
}

/** Those who make pools of an org do so one after the other, so that each counts what the others have made. */
export function lockOrg(tx: Tx, orgId: OrgId): PromiseLike<unknown> {
  // Not `for update`: rows that refer to the org, such as those of the audit log, would have to wait.
  return tx`select 1 from orgs where id = ${orgId} for no key update`
}

export async function countPools(tx: Tx, orgId: OrgId): Promise<number> {
  const [row] = await tx<[{ count: number }]>`
    select count(*)::int as count from runner_pools where org_id = ${orgId} and deleted_at is null`
  return row.count
}

export interface LockedPool {
  id: PoolId
  name: string
  settings: object
}

/** Not `for update`: a runner that registers refers to the row, and holds the token that a deletion waits for. */
export async function lockPool(tx: Tx, orgId: OrgId, ref: PoolRef): Promise<LockedPool | undefined> {
  const [row] = await tx<LockedPool[]>`
    select p.id, p.name, p.settings
    from runner_pools p
    where ${isMeant(tx, orgId, ref)} and p.deleted_at is null
    for no key update`
  return row
}

export function writeSettings(tx: Tx, id: PoolId, settings: object): PromiseLike<unknown> {
  return tx`update runner_pools set settings = ${JSON.stringify(settings)}::text::json where id = ${id}`
}

/** The longest silence, in milliseconds, after which an agent of this pool was told to end its programs. */
export async function longestFence(db: Db, poolId: PoolId): Promise<number> {
  const [row] = await db<[{ ms: number }]>`
    select coalesce(max(told_fence_ms), 0) as ms from runners where pool_id = ${poolId} and deregistered_at is null`
  return row.ms
}

export async function readSettings(db: Db, id: PoolId): Promise<object | undefined> {
  const [row] = await db<{ settings: object }[]>`select settings from runner_pools where id = ${id}`
  return row?.settings
}

export interface PoolUse {
  runners: number
  unfinishedRuns: number
  /** Slugs of workflows whose current version names it. */
  workflows: string[]
}

/** Tokens go first: whoever is registering with one has either done so, and is counted, or finds it gone. */
export async function deleteTokens(tx: Tx, id: PoolId): Promise<number> {
  const rows = await tx`delete from registration_tokens where pool_id = ${id} returning id`
  return rows.length
}

/** What stands against a deletion, counted up to `most` where there may be many. */
export async function useOf(
  tx: Tx,
  orgId: OrgId,
  pool: LockedPool,
  most: { runs: number; workflows: number },
): Promise<PoolUse> {
  const [row] = await tx<[PoolUse]>`
    select
      (select count(*)::int from runners where pool_id = ${pool.id} and deregistered_at is null) as runners,
      (
        select count(*)::int
        from (
          select
          from (${unfinishedOfPool(tx, orgId, pool.id)}) candidates
          cross join lateral (${runById(tx, tx`candidates.id`)}) r
          where r.pool_id = ${pool.id} and r.finished_at is null
          limit ${most.runs}
        ) unfinished
      ) as unfinished_runs,
      array(
        select w.slug
        from workflows w
        join workflow_versions v on v.workflow_id = w.id and v.version = w.version
        where w.org_id = ${orgId} and w.deleted_at is null and v.descriptor ->> 'pool' = ${pool.name}
        order by w.slug
        limit ${most.workflows}
      ) as workflows`
  return row
}

export function markDeleted(tx: Tx, id: PoolId): PromiseLike<unknown> {
  return tx`update runner_pools set deleted_at = now() where id = ${id}`
}
