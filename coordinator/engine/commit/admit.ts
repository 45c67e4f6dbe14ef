import type { PoolId, RunId } from '@windlass/shared/ids.ts'
import type { Tx } from '../../db/client.ts'
import { readGroups, workflowOf } from '../rules/groups.ts'
import * as store from '../store/concurrency.ts'
import * as rests from '../store/concurrency-rest.ts'
import { admitAtOnce, admitInTurn, newRoom } from './admit-lines.ts'
import { enqueueRest } from './enqueue-rest.ts'

/** What admission looks at of a run. */
export interface Counted {
  readonly id: RunId
  readonly concurrencyGroup: string | null
}

/** How runs of limited groups change sides within one transaction. */
export interface Changes {
  /** They come into the queue: at once where their groups have room, else when all of them have. */
  entering?: readonly Counted[]
  /** They have ended, come to wait, called another run, or were taken out of the queue. */
  leaving?: readonly Counted[]
  /** They go on after having waited, and count again even where that is one more than the limit for a while. */
  counting?: readonly Counted[]
}

interface Limited {
  id: RunId
  groups: string[]
}

/**
 * Counts runs where their descriptor limits concurrency, and lets in whom there is room for. Answers the pools in
 * whose queue something has come. To be called once in a transaction, after the rows of its runs are locked: it locks
 * all groups at once in one order, and two who took them by and by could wait for each other in a circle.
 */
export async function rebalance(tx: Tx, { entering = [], leaving = [], counting = [] }: Changes): Promise<PoolId[]> {
  const coming = limited(entering)
  const again = new Set(coming.map((run) => run.id))
  // Whoever goes straight back into the queue keeps his place.
  const going = limited(leaving).filter((run) => !again.has(run.id))
  const gone = new Set(going.map((run) => run.id))
  const resumed = limited(counting).filter((run) => !gone.has(run.id))
  const all = [...coming, ...going, ...resumed]
  if (all.length === 0) return []
  const groups = [...new Set(all.flatMap((run) => run.groups))]
  const writes = [
    store.lock(tx, [...new Set(groups.map(workflowOf))].sort()),
    ...(going.length > 0 ? [store.remove(tx, ids(going))] : []),
    ...(resumed.length > 0 ? [store.count(tx, resumed)] : []),
    ...(coming.length > 0 ? [store.requeue(tx, ids(coming)), store.wait(tx, ids(coming))] : []),
  ]
  const hasLists = all.some((run) => run.groups.length > 1)
  const room = newRoom()
  // The statements of the first are on their way before those of the second.
  const [, admitted] = await Promise.all([
    Promise.all(writes),
    hasLists ? admitInTurn(tx, groups, room) : admitAtOnce(tx, groups, room),
  ])
  if (room.rest.size > 0) await leaveRest(tx, [...room.rest])
  return [...new Set(admitted)]
}

/** What one transaction has left is let in behind it. */
async function leaveRest(tx: Tx, groups: readonly string[]): Promise<void> {
  for (const orgId of await rests.addRest(tx, groups)) await enqueueRest(tx, orgId)
}

function limited(runs: readonly Counted[]): Limited[] {
  return runs.flatMap(({ id, concurrencyGroup: text }) =>
    text === null ? [] : [{ id, groups: readGroups(text).map(({ key }) => key) }],
  )
}

const ids = (runs: readonly Limited[]) => runs.map((run) => run.id)
