import type { RunId } from '@windlass/shared/ids.ts'
import type { Db, Tx } from '../../db/client.ts'
import * as store from '../store/questions.ts'

export type { NewInput, TimedOut } from '../store/questions.ts'

/** Asks. The caller holds the locks of the runs, here and below. */
export function askQuestions(tx: Tx, rows: store.NewInput[]): PromiseLike<unknown> {
  return store.insert(tx, rows)
}

/** Nobody listens to an answer any more. */
export function closeQuestions(tx: Tx, runIds: RunId[]): PromiseLike<unknown> {
  return store.close(tx, runIds)
}

/** Of the answers that they get when their time is up. */
export function answerBytes(db: Db, due: readonly { runId: RunId; n: number }[]): Promise<number[]> {
  return store.answerBytes(db, due)
}

/** Time is up. Those that were closed before are left alone, and not among the answers. */
export function timeOutQuestions(tx: Tx, due: { runId: RunId; n: number }[]): PromiseLike<store.TimedOut[]> {
  return store.timeOut(tx, due)
}
