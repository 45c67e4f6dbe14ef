import type { RunId } from '@windlass/shared/ids.ts'
import type { Tx } from '../../db/client.ts'
import * as store from '../store/timers.ts'

export type { NewTimer } from '../store/timers.ts'

export function setTimers(tx: Tx, timers: readonly store.NewTimer[]): PromiseLike<unknown> {
  return store.insert(tx, timers)
}

/** Nothing of these runs becomes due any more. */
export function dropTimers(tx: Tx, runIds: readonly RunId[]): PromiseLike<unknown> {
  return store.drop(tx, runIds)
}

/** What a former attempt waited for is not waited for any more. The time of the whole run goes on. */
export function dropWaits(tx: Tx, runIds: readonly RunId[]): PromiseLike<unknown> {
  return store.dropWaits(tx, runIds)
}
