import type { Log } from '@windlass/shared/log.ts'
import type { Db } from '../../db/client.ts'
import { groupCommit, type GroupCommit } from '../../db/group-commit.ts'
import * as store from '../store/placements.ts'

/**
 * Tells whether a run is in the placement that an agent names: all who ask at the same moment share a statement. It is
 * asked before anything is looked up or judged for the agent; the commit looks again, under the lock.
 */
export type Holders = GroupCommit<store.NamedPlacement, boolean>

export function openHolders(db: Db, log: Log): Holders {
  return groupCommit<store.NamedPlacement, boolean>({
    name: 'read holders',
    log,
    orgOf: ({ orgId }) => orgId,
    // The batch that waits for it has patience of its own.
    patienceMs: 0,
    max: 256,
    lanes: 2,
    async commit(named) {
      const current = await store.currentAmong(db, named)
      return named.map((one) => current.has(store.acceptanceKey(one)))
    },
  })
}

/** An agent speaks of a run that it does not hold. */
export class NotHeld extends Error {}

/** Asks once, when it is called first, and rejects with `NotHeld` where the runner does not hold the run. */
export function createHeldCheck(holders: Holders, placement: store.NamedPlacement): () => Promise<void> {
  let asked: Promise<boolean> | undefined
  return async () => {
    asked ??= holders.add(placement)
    if (!(await asked)) throw new NotHeld()
  }
}
