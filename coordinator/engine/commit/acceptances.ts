import type { RunnerId } from '@windlass/shared/ids.ts'
import { isSuspended } from '@windlass/shared/model/run.ts'
import type { Db } from '../../db/client.ts'
import * as store from '../store/placements.ts'

/**
 * What becomes of an acceptance. All but `late` were in time. `resuming`: the run continues, and more may have come for
 * it since the offer was made. `cancelling`: meanwhile somebody wants it to stop.
 */
export type Accepted = 'ours' | 'resuming' | 'cancelling' | 'late'

/** Makes offers into leases for all who accept at this moment. */
export async function commitAcceptances(
  db: Db,
  acceptances: store.Acceptance[],
  noteAccepted: (deps: { db: Db }, runnerIds: readonly RunnerId[]) => Promise<void>,
): Promise<Accepted[]> {
  const { statuses, unaccepted } = await store.accept(db, acceptances)
  if (unaccepted.length > 0) await noteAccepted({ db }, unaccepted)
  return acceptances.map((one) => {
    const status = statuses.get(store.placementKey(one.runId, one.epoch))
    if (!status) return 'late'
    if (status === 'cancelling') return 'cancelling'
    return isSuspended(status) ? 'resuming' : 'ours'
  })
}
