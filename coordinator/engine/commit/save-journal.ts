import type { OrgId, RunId } from '@windlass/shared/ids.ts'
import type { Tx } from '../../db/client.ts'
import { askQuestions, closeQuestions, type NewInput } from './questions.ts'
import { dropWaits, type NewTimer, setTimers } from './set-timers.ts'
import { isChanged } from '../rules/journal.ts'
import { carryFailures, takeBackFailure } from '../store/failures.ts'
import * as store from '../store/journal.ts'

interface Written extends store.Changed {
  orgId: OrgId
}

/** Writes what happens to the journals of these runs: a statement a table, to be awaited together. */
export function writeJournals(tx: Tx, runs: readonly Written[]): PromiseLike<unknown>[] {
  const changed = runs.filter((run) => isChanged(run.journal))
  const some = (has: (run: Written) => boolean) => changed.filter(has)
  const writes: PromiseLike<unknown>[] = []
  const opened = some(({ journal: own }) => own.entries.length > 0)
  if (opened.length > 0) writes.push(store.insert(tx, opened))
  const adopted = some(({ journal: own }) => own.adopted.length > 0)
  if (adopted.length > 0) writes.push(store.adopt(tx, adopted))
  const questions = changed.flatMap(questionsOf)
  if (questions.length > 0) writes.push(askQuestions(tx, questions))
  const due = changed.flatMap(timersOf)
  if (due.length > 0) writes.push(setTimers(tx, due))
  const completed = some(({ journal: own }) => own.completed.length > 0)
  if (completed.length > 0) writes.push(store.complete(tx, completed))
  const delivered = some(({ journal: own }) => own.delivered.length > 0)
  if (delivered.length > 0) writes.push(store.deliver(tx, delivered))
  const drifted = some(({ journal: own }) => own.drifted.length > 0)
  if (drifted.length > 0) writes.push(store.drift(tx, drifted))
  const thrown = some(({ journal: own }) => own.thrown !== null)
  if (thrown.length > 0) writes.push(carryFailures(tx, thrown), takeBackFailure(tx, thrown))
  const forgetful = some(({ journal: own }) => own.forgotten !== null)
  const ids = forgetful.map((run) => run.id)
  if (ids.length > 0) writes.push(store.forget(tx, forgetful), closeQuestions(tx, ids), dropWaits(tx, ids))
  return writes
}

function questionsOf({ id, orgId, journal: { questions } }: Written): NewInput[] {
  return questions.map((question) => ({ ...question, orgId, runId: id }))
}

/** Waits with a time of their own. */
function timersOf({ id, journal: { entries } }: Written): NewTimer[] {
  return entries.flatMap(({ n, kind, due }) =>
    due && (kind === 'sleep' || kind === 'input') ? [{ runId: id, kind, n, due }] : [],
  )
}

/** Their runs have ended: nobody waits any more for what is open. */
export function closeJournals(tx: Tx, runIds: RunId[]): PromiseLike<unknown>[] {
  return [...store.close(tx, runIds), closeQuestions(tx, runIds)]
}
