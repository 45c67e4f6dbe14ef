import type { PoolId, RunId } from '@windlass/shared/ids.ts'
import type { Tx } from '../../db/client.ts'
import { compareStages, readGroups, stageOf, workflowOf } from '../rules/groups.ts'
import * as store from '../store/concurrency.ts'

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
  // The statements of the first are on their way before those of the second.
  const [, admitted] = await Promise.all([
    Promise.all(writes),
    hasLists ? admitInTurn(tx, groups) : admitAtOnce(tx, groups),
  ])
  return [...new Set(admitted)]
}

/** Where every run has one group, all lines move at once. A run of another version may have more, and goes on. */
async function admitAtOnce(tx: Tx, groups: readonly string[]): Promise<PoolId[]> {
  const { pools, next } = sorted(await admitAll(tx, groups))
  return next.length === 0 ? pools : [...pools, ...(await admitInTurn(tx, next))]
}

/**
 * A run that has entered a group goes on to its next one, where it stands by the time of its arrival. So the lines of a
 * stage move when all that come into them are there.
 */
async function admitInTurn(tx: Tx, groups: readonly string[]): Promise<PoolId[]> {
  const left = new Set(groups)
  const pools: PoolId[] = []
  while (left.size > 0) {
    const stage = [...left].map(stageOf).sort(compareStages)[0]!
    const these = [...left].filter((key) => stageOf(key) === stage)
    for (const key of these) left.delete(key)
    const found = sorted(await admitAll(tx, these))
    pools.push(...found.pools)
    for (const key of found.next) left.add(key)
  }
  return pools
}

/** Of a line in one transaction, which holds locks meanwhile: 2,048 runs take some 0.4 s. */
const MOST_PIECES = 8

/**
 * A line of which as many were let in as a statement may has perhaps room for more. Of a very long one, whose limit was
 * raised far, the rest comes in with the next of its runs that end, or with the sweep.
 */
async function admitAll(tx: Tx, groups: readonly string[]): Promise<store.Admitted[]> {
  const all: store.Admitted[] = []
  let left = groups
  for (let pieces = 0; left.length > 0 && pieces < MOST_PIECES; pieces++) {
    const admitted = await store.admit(tx, left)
    all.push(...admitted)
    const byLine = Map.groupBy(admitted, ({ groupKey }) => groupKey)
    left = [...byLine].filter(([, own]) => own.length >= store.MOST_ADMITTED).map(([key]) => key)
  }
  return all
}

function sorted(admitted: readonly store.Admitted[]) {
  return {
    pools: admitted.flatMap(({ poolId, nextGroup }) => (nextGroup === null ? [poolId] : [])),
    next: admitted.flatMap(({ nextGroup }) => (nextGroup === null ? [] : [nextGroup])),
  }
}

function limited(runs: readonly Counted[]): Limited[] {
  return runs.flatMap(({ id, concurrencyGroup: text }) =>
    text === null ? [] : [{ id, groups: readGroups(text).map(({ key }) => key) }],
  )
}

const ids = (runs: readonly Limited[]) => runs.map((run) => run.id)
