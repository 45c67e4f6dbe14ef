import { Fault } from '@windlass/shared/errors.ts'
import { newId, type OrgId } from '@windlass/shared/ids.ts'
import type { RunnerPool } from '@windlass/shared/model/pool.ts'
import type { Acting } from '../actor.ts'
import { record } from '../audit/record.ts'
import type { Sql } from '../db/client.ts'
import type { Deps } from '../deps.ts'
import { presentPool } from './read.ts'
import { findPool, insertPool } from './store.ts'

/** The pool of this name is there when this returns, made now or before. */
export async function ensurePool(sql: Sql, orgId: OrgId, name: string): Promise<void> {
  await insertPool(sql, { id: newId('pool'), orgId, name })
}

export async function createPool(
  deps: Pick<Deps, 'db' | 'targets'>,
  caller: Acting,
  name: string,
): Promise<RunnerPool> {
  const id = newId('pool')
  await deps.db.begin(async (tx) => {
    const isNew = await insertPool(tx, { id, orgId: caller.orgId, name })
    if (!isNew) throw new Fault('CONFLICT', { path: 'name', name }, `This org has a pool \`${name}\` already.`)
    await record(tx, caller, { action: 'pools.create', target: { type: 'runner_pool', id, name }, after: { name } })
  })
  // Workflows may have named it before it was there.
  deps.targets.forget(caller.orgId)
  return presentPool((await findPool(deps.db, caller.orgId, id))!)
}
