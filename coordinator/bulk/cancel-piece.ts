import { type CancelDeps, cancelThese } from '../engine/commit/cancel.ts'
import { lightPiece } from '../engine/commit/light-piece.ts'
import type { BareJobRow } from './row.ts'
import * as store from './store.ts'

export type CancelPieceDeps = CancelDeps

/** Each piece is one transaction that holds its runs: claims and reports of these wait for it. */
const AT_ONCE = 100

/** Asking a run twice changes nothing, so this may be cut off anywhere. */
export async function cancelPiece(deps: CancelPieceDeps, { id, author, reason }: BareJobRow): Promise<void> {
  const ids = await lightPiece(deps.db, await store.takeRuns(deps.db, id, AT_ONCE))
  await cancelThese(deps, ids, { by: author.id, reason, descentInMs: 0 })
  const ended = new Set((await store.notCancelled(deps.db, ids)).map((run) => run.id))
  const failures = [...ended].map((runId) => ({ runId, error: 'RUN_ALREADY_FINISHED' }))
  await deps.db.begin(async (tx) => {
    await store.settle(
      tx,
      id,
      ids.filter((runId) => !ended.has(runId)),
    )
    await store.noteFailures(tx, id, failures)
  })
}
