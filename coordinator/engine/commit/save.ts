import { isFinal, isSuspended } from '@windlass/shared/model/run.ts'
import { rebalance } from './admit.ts'
import type { Tx } from '../../db/client.ts'
import * as events from '../../events/store.ts'
import { enqueueDescents } from './enqueue-descents.ts'
import { isChanged } from '../rules/journal.ts'
import { closeJournals, writeJournals } from './save-journal.ts'
import { dropTimers, setTimers } from './set-timers.ts'
import type { Moving } from '../rules/run.ts'
import { mayEnterAsResume } from '../rules/transitions.ts'
import * as store from '../store/runs.ts'
import { insertLosses, noteAcks } from '../store/run-losses.ts'
import { insertQueued, isDue } from '../store/new-runs.ts'

/**
 * Writes what has changed, of these runs and of the parents that they told. A statement a table, sent together; the order is the
 * one in which they execute.
 */
export async function saveMoves(tx: Tx, given: Moving[]): Promise<void> {
  if (given.length === 0) return
  const runs = withParents(given)
  const children = runs.flatMap((run) => run.journal.children)
  const created = children.length > 0 ? [insertQueued(tx, children)] : []
  const writes = [...saveRuns(tx, runs), ...created, ...writeJournals(tx, runs), ...saveQueues(tx, runs)]
  await Promise.all([...writes, cancelForgotten(tx, runs)])
  // Last: others of the same group wait from here to the commit.
  await saveConcurrency(tx, runs)
}

/** The next attempt takes nothing over, and calls anew what the last one had called. */
function cancelForgotten(tx: Tx, runs: Moving[]): Promise<void> {
  const forgetful = runs.filter(({ journal }) => journal.forgotten !== null)
  const descents = forgetful.map(({ id, orgId, entries }) => {
    const reason = `its parent ${id} started again from the top and forgot it`
    return { runId: id, orgId, by: 'windlass', reason, upTo: entries }
  })
  return enqueueDescents(tx, descents, 0)
}

function withParents(runs: Moving[]): Moving[] {
  const parents = runs.map((run) => run.parent).filter((parent) => parent && isChanged(parent.journal))
  return [...new Set([...runs, ...(parents as Moving[])])]
}

function saveRuns(tx: Tx, runs: Moving[]): PromiseLike<unknown>[] {
  const moved = runs.filter((run) => run.isMoved || run.started || run.timedOut)
  const advanced = runs.filter((run) => !moved.includes(run))
  const released = runs.filter((run) => run.released)
  const lost = runs.filter((run) => run.loss !== null)
  const heard = runs.filter((run) => run.isHeard && !run.released)
  const unsuccessful = moved.filter((run) => isFinal(run.status) && run.status !== 'completed')
  const written = runs.flatMap((run) => run.events)
  return [
    ...(moved.length > 0 ? [store.update(tx, moved)] : []),
    ...(advanced.length > 0 ? [store.advance(tx, advanced)] : []),
    ...(written.length > 0 ? [events.insert(tx, written)] : []),
    ...(lost.length > 0 ? [insertLosses(tx, lost)] : []),
    ...(released.length > 0 ? [store.release(tx, released)] : []),
    ...(heard.length > 0 ? [noteAcks(tx, heard)] : []),
    ...(unsuccessful.length > 0 ? [store.noteUnsuccessful(tx, unsuccessful)] : []),
  ]
}

function saveQueues(tx: Tx, runs: Moving[]): PromiseLike<unknown>[] {
  const ended = runs.filter((run) => run.released && isFinal(run.status)).map((run) => run.id)
  const withJournal = runs.filter((run) => run.released && isFinal(run.status) && run.entries > 0).map((run) => run.id)
  const entering = runs.filter((run) => run.requeued?.delayMs === 0 && run.concurrencyGroup === null)
  const later = runs.flatMap(({ id, requeued, replayAfterMs }) => {
    const inMs = requeued?.delayMs || replayAfterMs
    return inMs ? [{ runId: id, kind: 'enqueue' as const, n: 0, due: { inMs } }] : []
  })
  const resting = runs.filter(mayEnterAsResume)
  return [
    ...(ended.length > 0 ? [dropTimers(tx, ended)] : []),
    ...(withJournal.length > 0 ? closeJournals(tx, withJournal) : []),
    ...(entering.length > 0 ? [store.enterQueue(tx, entering)] : []),
    ...(later.length > 0 ? [setTimers(tx, later)] : []),
    ...(resting.length > 0 ? [store.enterAsResume(tx, resting)] : []),
  ]
}

/** Runs whose descriptor limits how many there may be. The locks of their groups come after those of the runs, and all at once. */
async function saveConcurrency(tx: Tx, runs: Moving[]): Promise<void> {
  const children = runs.flatMap((run) => run.journal.children)
  const limited = runs.filter((run) => run.concurrencyGroup !== null)
  if (limited.length === 0 && children.every((child) => child.concurrencyGroup === null)) return
  const pools = await rebalance(tx, {
    // A throttled child takes its turn when its timer fires, at once: here it would wait for a lock.
    entering: [...limited.filter((run) => run.requeued?.delayMs === 0), ...children.filter(isDue)],
    leaving: limited.filter(
      (run) => run.released || (run.suspended && isSuspended(run.status)) || run.journal.children.length > 0,
    ),
    counting: limited.filter((run) => run.resumed && run.status === 'running'),
  })
  for (const poolId of pools) runs[0]!.pokes.add(poolId)
}
