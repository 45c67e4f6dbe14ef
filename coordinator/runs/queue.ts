import type { RunId } from '@windlass/shared/ids.ts'
import type { Tx } from '../db/client.ts'
import * as store from './store.ts'

/** Takes runs out of the queue. To be called before their rows are locked: claims lock in that order. */
export function leaveQueue(tx: Tx, ids: readonly RunId[]): Promise<void> {
  return store.leaveQueue(tx, ids)
}
