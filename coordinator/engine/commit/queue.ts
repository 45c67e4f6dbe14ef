import type { RunId } from '@windlass/shared/ids.ts'
import type { Tx } from '../../db/client.ts'
import * as store from '../store/runs.ts'

/** Takes runs out of the queue. To be called when their rows are locked: until then a completion may still put one there. */
export function leaveQueue(tx: Tx, ids: readonly RunId[]): Promise<void> {
  return store.leaveQueue(tx, ids)
}
