import type { RunId } from '@windlass/shared/ids.ts'
import type { Tx } from '../../db/client.ts'
import { readHolds } from '../rules/holds.ts'
import type { Moving } from '../rules/run.ts'
import { emit } from '../rules/transitions.ts'
import * as store from '../store/debounces.ts'
import { type Debounce, holdsOf, type NewRun } from '../store/new-runs.ts'
import { moveRunsIn } from './move-runs.ts'
import { createRuns } from './trigger.ts'

/** What has become of a call: its run was created, or it is the so many-th that was merged into an earlier one. */
export type Created = { at: Date } | { into: Moving; merged: number }

/**
 * Creates a run; where its descriptor debounces and a run waits for further calls, this is one of them. The lock of the
 * key comes before those of runs: whoever holds the lock of a run never asks for a key. To be announced after the
 * commit.
 */
export async function createOrMerge(tx: Tx, run: NewRun): Promise<Created> {
  const { debounce } = run
  if (debounce !== null) {
    const first = await store.take(tx, debounce, run.id)
    const merged = first === run.id ? undefined : await merge(tx, first, run, debounce)
    if (merged) return merged
    if (first !== run.id) await store.replace(tx, debounce, run.id)
  }
  return { at: (await createRuns(tx, [run])).get(run.id)! }
}

/** Undefined: the run waits no more. */
async function merge(tx: Tx, first: RunId, call: NewRun, debounce: Debounce) {
  const { moved, answer } = await moveRunsIn(tx, { ids: [first], ending: [] }, async (_, runs) => {
    const into = runs.get(first)
    const wait = into?.status === 'queued' ? await store.waitOf(tx, first) : undefined
    const before = readHolds(wait?.holds ?? null).debounce
    if (!into || !before) return { moved: [], answer: 0 }
    const merged = before.merged + 1
    const { until, now } = await store.merge(tx, first, { ...call, debounce, holds: holdsOf(call, merged) })
    const data = { merged, until: Math.round(until), ...(call.triggerActor && { by: call.triggerActor }) }
    emit(into, { at: Math.floor(now), channel: 'lifecycle', type: 'run.merged', dataText: JSON.stringify(data) })
    return { moved: [into], answer: merged }
  })
  const [into] = moved
  return into && { into, merged: answer }
}
