import type { PoolId, RunId } from '@windlass/shared/ids.ts'
import type { Tx } from '../../db/client.ts'
import * as store from '../store/concurrency.ts'

/** What admission looks at of a run. */
export interface Counted {
  readonly id: RunId
  readonly concurrencyGroup: string | null
}

/** How runs of limited groups change sides within one transaction. */
export interface Changes {
  /** They come into the queue: at once where their group has room, else when it has. */
  entering?: readonly Counted[]
  /** They have ended, come to wait, called another run, or were taken out of the queue. */
  leaving?: readonly Counted[]
  /** They go on after having waited, and count again even where that is one more than the limit for a while. */
  counting?: readonly Counted[]
}

interface Limited {
  id: RunId
  group: string
}

/**
 * Counts runs where their descriptor limits concurrency, and lets in whom there is room for. Answers the pools in whose queue something
 * has come. To be called once in a transaction, after the rows of its runs are locked: it locks all groups at once in one
 * order, and two who took them by and by could wait for each other in a circle.
 */
export async function rebalance(tx: Tx, { entering = [], leaving = [], counting = [] }: Changes): Promise<PoolId[]> {
  const coming = limited(entering)
  const again = new Set(coming.map((run) => run.id))
  // Whoever goes straight back into the queue keeps his place.
  const going = limited(leaving).filter((run) => !again.has(run.id))
  const gone = new Set(going.map((run) => run.id))
  const resumed = limited(counting).filter((run) => !gone.has(run.id))
  const groups = [...new Set([...coming, ...going, ...resumed].map((run) => run.group))].sort()
  if (groups.length === 0) return []
  const writes = [
    store.lock(tx, groups),
    ...(going.length > 0 ? [store.remove(tx, ids(going))] : []),
    ...(resumed.length > 0 ? [store.count(tx, resumed)] : []),
    ...(coming.length > 0 ? [store.requeue(tx, ids(coming)), store.wait(tx, ids(coming))] : []),
  ]
  const admitted = store.admit(tx, groups)
  await Promise.all([...writes, admitted])
  return [...new Set((await admitted).map((run) => run.poolId))]
}

function limited(runs: readonly Counted[]): Limited[] {
  return runs.flatMap(({ id, concurrencyGroup: group }) => (group === null ? [] : [{ id, group }]))
}

const ids = (runs: readonly Limited[]) => runs.map((run) => run.id)
