import type { PoolId } from '@windlass/shared/ids.ts'
import type { Tx } from '../../db/client.ts'
import { compareStages, stageOf } from '../rules/groups.ts'
import * as store from '../store/concurrency.ts'

/** How many more a transaction lets in, and the groups in which there may be room for others. */
export interface Room {
  left: number
  rest: Set<string>
}

/** It holds locks meanwhile, for which timers of all orgs may wait: so many take some 0.4 s. */
const MOST_AT_ONCE = 2048

export const newRoom = (): Room => ({ left: MOST_AT_ONCE, rest: new Set() })

/** Where every run has one group, all lines move at once. A run of another version may have more, and goes on. */
export async function admitAtOnce(tx: Tx, groups: readonly string[], room: Room): Promise<PoolId[]> {
  const { pools, next } = sorted(await admitAll(tx, groups, room))
  return next.length === 0 ? pools : [...pools, ...(await admitInTurn(tx, next, room))]
}

/**
 * A run that has entered a group goes on to its next one, where it stands by the time of its arrival. So the lines of a
 * stage move when all that come into them are there.
 */
export async function admitInTurn(tx: Tx, groups: readonly string[], room: Room): Promise<PoolId[]> {
  const left = new Set(groups)
  const pools: PoolId[] = []
  while (left.size > 0) {
    const stage = [...left].map(stageOf).sort(compareStages)[0]!
    const these = [...left].filter((key) => stageOf(key) === stage)
    for (const key of these) left.delete(key)
    const found = sorted(await admitAll(tx, these, room))
    pools.push(...found.pools)
    for (const key of found.next) left.add(key)
  }
  return pools
}

/** Lines share the room. A line of which as many were let in as a statement may has perhaps room for more. */
async function admitAll(tx: Tx, groups: readonly string[], room: Room): Promise<store.Admitted[]> {
  const all: store.Admitted[] = []
  let left = groups
  while (left.length > 0 && room.left > 0) {
    const each = Math.min(store.MOST_ADMITTED, Math.ceil(room.left / left.length))
    const admitted = await store.admit(tx, left, each)
    all.push(...admitted)
    room.left -= admitted.length
    const byLine = Map.groupBy(admitted, ({ groupKey }) => groupKey)
    left = [...byLine].filter(([, own]) => own.length >= each).map(([key]) => key)
  }
  for (const key of left) room.rest.add(key)
  return all
}

function sorted(admitted: readonly store.Admitted[]) {
  return {
    pools: admitted.flatMap(({ poolId, nextGroup }) => (nextGroup === null ? [poolId] : [])),
    next: admitted.flatMap(({ nextGroup }) => (nextGroup === null ? [] : [nextGroup])),
  }
}
