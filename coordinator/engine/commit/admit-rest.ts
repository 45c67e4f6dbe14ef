import type { OrgId, PoolId } from '@windlass/shared/ids.ts'
import type { Db, Tx } from '../../db/client.ts'
import { admitInTurn, newRoom } from './admit-lines.ts'
import type { AnnounceDeps } from './announce.ts'
import { enqueueRest } from './enqueue-rest.ts'
import { workflowOf } from '../rules/groups.ts'
import * as store from '../store/concurrency.ts'
import * as rests from '../store/concurrency-rest.ts'
import { type Jobs, TURN_MS } from '../../jobs/queue.ts'

type RestDeps = { db: Db } & Pick<AnnounceDeps, 'dispatchers' | 'bell'>

/** Groups of one transaction. */
const REST_AT_ONCE = 500

/** Lets in what transactions of an org have left, a piece at a time. What is left after a turn is for a further job. */
export async function admitRest(deps: RestDeps, { orgId: org }: Jobs['runs:admit'], turnMs = TURN_MS): Promise<void> {
  const orgId = org as OrgId
  const since = performance.now()
  while (performance.now() - since < turnMs) {
    const groups = await rests.nextRest(deps.db, orgId, REST_AT_ONCE)
    if (groups.length === 0) return
    const pools = await deps.db.begin((tx) => admitPiece(tx, orgId, groups))
    for (const poolId of pools) {
      deps.dispatchers.poke(poolId)
      deps.bell.ring('pool', poolId)
    }
  }
  await deps.db.begin((tx) => enqueueRest(tx, orgId))
}

async function admitPiece(tx: Tx, orgId: OrgId, groups: readonly string[]): Promise<Set<PoolId>> {
  const room = newRoom()
  await store.lock(tx, [...new Set(groups.map(workflowOf))].sort())
  await rests.removeRest(tx, orgId, groups)
  const pools = await admitInTurn(tx, groups, room)
  if (room.rest.size > 0) await rests.addRest(tx, [...room.rest])
  return new Set(pools)
}
