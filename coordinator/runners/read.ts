import { Fault } from '@windlass/shared/errors.ts'
import type { RunnerId } from '@windlass/shared/ids.ts'
import type { Runner, RunnerPool } from '@windlass/shared/model/runner.ts'
import type { Caller } from '../actor.ts'
import type { Deps } from '../deps.ts'
import * as store from './store.ts'

export async function listPools(
  deps: Pick<Deps, 'db'>,
  caller: Caller,
  page: { after: string | undefined; limit: number },
): Promise<RunnerPool[]> {
  return (await store.listPools(deps.db, caller.orgId, page)).map(presentPool)
}

export async function listRunners(deps: Pick<Deps, 'db'>, filter: store.RunnerFilter): Promise<Runner[]> {
  return (await store.listRunners(deps.db, filter)).map(presentRunner)
}

export async function getRunner(deps: Pick<Deps, 'db'>, caller: Caller, id: RunnerId): Promise<Runner> {
  const row = await store.findRunner(deps.db, caller.orgId, id)
  if (!row) throw new Fault('NOT_FOUND', { runner: id })
  return presentRunner(row)
}

export function presentPool(row: store.PoolRow): RunnerPool {
  return { ...row, createdAt: row.createdAt.getTime() }
}

function presentRunner(row: store.RunnerRow): Runner {
  const { poolId, poolName, online, createdAt, lastPollAt, lastHeartbeatAt, ...rest } = row
  return {
    ...rest,
    pool: { id: poolId, name: poolName },
    status: online ? 'online' : 'offline',
    createdAt: createdAt.getTime(),
    lastPollAt: lastPollAt?.getTime() ?? null,
    lastHeartbeatAt: lastHeartbeatAt?.getTime() ?? null,
  }
}
