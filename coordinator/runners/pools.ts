import { isDeepStrictEqual } from 'node:util'
import { Fault } from '@windlass/shared/errors.ts'
import { newId, type OrgId, type PoolRef } from '@windlass/shared/ids.ts'
import type { RunnerPool } from '@windlass/shared/model/pool.ts'
import type { Db, Sql } from '../db/client.ts'
import { changed, checked, type PoolSettingsCache, type SettingsChange } from './pool-settings.ts'
import { targetsChanged, type TargetsChange } from '../workflows/targets.ts'
import type { Acting, Caller } from '../actor.ts'
import { record } from '../audit/record.ts'
import { presentPool } from './read.ts'
import { findPool } from './store.ts'
import * as store from './store-pools.ts'

/** Of an org. Each may have figures of its own in the metrics, and what goes through all pools goes through these. */
const MOST_POOLS = 500

/** The pool of this name is there when this returns, made now or before. */
export async function ensurePool(sql: Sql, orgId: OrgId, name: string): Promise<void> {
  await store.insertPool(sql, { id: newId('pool'), orgId, name, settings: {} })
}

export async function getPool(deps: { db: Db }, caller: Caller, pool: PoolRef): Promise<RunnerPool> {
  const row = await findPool(deps.db, caller.orgId, pool)
  if (!row) throw new Fault('NOT_FOUND', { pool })
  return presentPool(row)
}

export async function createPool(
  deps: TargetsChange & { db: Db; poolSettings: PoolSettingsCache },
  caller: Acting,
  ask: { name: string; settings: SettingsChange },
): Promise<RunnerPool> {
  const { name } = ask
  const settings = changed({}, ask.settings)
  checked(settings)
  const id = await deps.db.begin(async (tx) => {
    await store.lockOrg(tx, caller.orgId)
    const made = await store.insertPool(tx, { id: newId('pool'), orgId: caller.orgId, name, settings })
    if (!made) throw new Fault('CONFLICT', { path: 'name', name }, `This org has a pool \`${name}\` already.`)
    if ((await store.countPools(tx, caller.orgId)) > MOST_POOLS) throw tooMany()
    const after = { name, ...(Object.keys(settings).length > 0 && { settings }) }
    await record(tx, caller, { action: 'pools.create', target: { type: 'runner_pool', id: made, name }, after })
    return made
  })
  // Workflows may have named it before it was there.
  targetsChanged(deps, caller.orgId)
  deps.poolSettings.forget(id)
  return getPool(deps, caller, id)
}

function tooMany(): Fault {
  return new Fault(
    'VALIDATION_FAILED',
    { path: 'name', limit: MOST_POOLS },
    `name: the org has ${MOST_POOLS} runner pools, and may have no more. Delete one that is not used.`,
  )
}

/** Its agents hear of it with their next heartbeat. */
export async function updatePool(
  deps: { db: Db; poolSettings: PoolSettingsCache },
  caller: Acting,
  ask: { pool: PoolRef; settings: SettingsChange },
): Promise<RunnerPool> {
  const id = await deps.db.begin(async (tx) => {
    const pool = await store.lockPool(tx, caller.orgId, ask.pool)
    if (!pool) throw new Fault('NOT_FOUND', { pool: ask.pool })
    const after = changed(pool.settings, ask.settings)
    if (isDeepStrictEqual(checked(after), checked(pool.settings))) return pool.id
    await store.writeSettings(tx, pool.id, after)
    const target = { type: 'runner_pool', id: pool.id, name: pool.name }
    await record(tx, caller, { action: 'pools.update', target, before: pool.settings, after })
    return pool.id
  })
  deps.poolSettings.forget(id)
  return getPool(deps, caller, id)
}

/** Enough to say that there are many. */
const MOST = { runs: 1000, workflows: 10 }

/**
 * Its registration tokens go with it. A run that is queued at this very moment, by a retry or by an older version that names the pool,
 * is not seen here: it waits until a pool of this name is there again.
 */
export async function deletePool(deps: TargetsChange & { db: Db }, caller: Acting, ref: PoolRef): Promise<void> {
  await deps.db.begin(async (tx) => {
    const pool = await store.lockPool(tx, caller.orgId, ref)
    if (!pool) throw new Fault('NOT_FOUND', { pool: ref })
    const { id } = pool
    const tokens = await store.deleteTokens(tx, id)
    const use = await store.useOf(tx, caller.orgId, pool, MOST)
    if (use.runners + use.unfinishedRuns + use.workflows.length > 0) throw inUse(pool.name, use)
    await store.markDeleted(tx, id)
    const target = { type: 'runner_pool', id, name: pool.name }
    const before = { name: pool.name, settings: pool.settings, registrationTokens: tokens }
    await record(tx, caller, { action: 'pools.delete', target, before })
  })
  targetsChanged(deps, caller.orgId)
}

function inUse(pool: string, { runners, unfinishedRuns, workflows }: store.PoolUse): Fault {
  const slugs = workflows.map((slug) => `\`${slug}\``).join(', ') + (workflows.length === MOST.workflows ? ' …' : '')
  const atLeast = unfinishedRuns >= MOST.runs ? 'at least ' : ''
  const reasons = [
    runners > 0 && `${count(runners, 'runner')} (\`windlass runners deregister\`)`,
    unfinishedRuns > 0 && `${atLeast}${count(unfinishedRuns, 'unfinished run')} (let them end or cancel them)`,
    workflows.length > 0 && `current versions of workflows name it: ${slugs}`,
  ].filter((reason) => reason !== false)
  const detail = { pool, runners, unfinishedRuns, workflows }
  return new Fault('POOL_IN_USE', detail, `The pool \`${pool}\` is in use: ${reasons.join('; ')}.`)
}

const count = (n: number, noun: string) => `${n} ${noun}${n === 1 ? '' : 's'}`
