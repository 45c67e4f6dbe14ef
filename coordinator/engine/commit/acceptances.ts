import type { RunnerId } from '@windlass/shared/ids.ts'
import { isSuspended } from '@windlass/shared/model/run.ts'
import type { Placement } from '@windlass/shared/wire/agent.ts'
import type { Db, Sql } from '../../db/client.ts'
import * as store from '../store/placements.ts'

export type Acceptance = store.Acceptance

/**
 * What becomes of an acceptance. All but `late` were in time. `resuming`: the run continues, and more may have come for
 * it since the offer was made. `cancelling`: meanwhile somebody wants it to stop.
 */
export type Accepted = 'ours' | 'resuming' | 'cancelling' | 'late'

/** Makes offers into leases for all who accept at this moment. */
export async function commitAcceptances(
  db: Db,
  acceptances: Acceptance[],
  noteAccepted: (deps: { db: Db }, runnerIds: readonly RunnerId[]) => Promise<void>,
): Promise<Accepted[]> {
  const { statuses, unaccepted } = await store.accept(db, acceptances)
  if (unaccepted.length > 0) await noteAccepted({ db }, unaccepted)
  return acceptances.map((one) => {
    const status = statuses.get(store.acceptanceKey(one))
    if (!status) return 'late'
    if (status === 'cancelling') return 'cancelling'
    return isSuspended(status) ? 'resuming' : 'ours'
  })
}

/** Those of these placements that the runner was offered and has not accepted. */
export async function offeredAmong(sql: Sql, runnerId: RunnerId, runs: readonly Placement[]): Promise<Placement[]> {
  const own = await store.among(sql, runnerId, runs)
  return own.filter(({ accepted }) => !accepted).map(({ runId, epoch }) => [runId, epoch])
}

/** So many are looked for one by one. */
const MANY = 64

/** Which of these placements the runner has, and which nobody needs to look for: an agent may name thousands. */
export async function givenAmong(
  db: Db,
  runnerId: RunnerId,
  runs: readonly Placement[],
): Promise<{ given: Placement[]; others: Placement[] }> {
  if (runs.length <= MANY) return { given: [...runs], others: [] }
  const found = await store.among(db, runnerId, runs)
  const own = new Set(found.map(({ runId, epoch }) => store.placementKey(runId, epoch)))
  const isOwn = ([run, epoch]: Placement) => own.has(store.placementKey(run, epoch))
  return { given: runs.filter(isOwn), others: runs.filter((each) => !isOwn(each)) }
}
