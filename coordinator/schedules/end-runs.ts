import type { OrgId, RunId, ScheduleId } from '@windlass/shared/ids.ts'
import { probe } from '@windlass/shared/probe.ts'
import type { Db, Tx } from '../db/client.ts'
import { AT_ONCE, type CancelDeps, cancelThese } from '../engine/commit/cancel.ts'
import { lightPiece } from '../engine/commit/light-piece.ts'
import { type EndOfRuns, enqueue, type Jobs, TURN_MS } from '../jobs/queue.ts'
import { unfinishedOf } from './store-unfinished.ts'

/** Of each schedule so many are named with the tick; the job finds the others. */
export const ENDED_AT_ONCE = 100
/** Found at once by the job. */
const FOUND_AT_ONCE = 1000

export type EndOfOrg = EndOfRuns & { orgId: OrgId }

/**
 * Ends unfinished runs of schedules after the commit of the runs for which they end: a job for each org, and those of
 * one org one after the other. Thousands of its schedules may tick in one minute, and others wait for the same workers.
 */
export async function enqueueEnds(tx: Tx, ends: readonly EndOfOrg[]): Promise<void> {
  for (const [orgId, own] of Map.groupBy(ends, (end) => end.orgId))
    await enqueueTurn(tx, { orgId, ends: own.map(({ orgId: _, ...end }) => end) })
}

function enqueueTurn(tx: Tx, payload: Jobs['schedules:endRuns']): Promise<void> {
  const { ends } = payload
  return enqueue(tx, 'schedules:endRuns', [{ payload, inMs: 0, key: `end-runs:${ends[0]!.newRun}` }])
}

/** One turn of a job. Done again it changes nothing: what is being cancelled or has ended is left alone. */
export async function endRuns(
  deps: CancelDeps & { db: Db },
  { orgId, ends }: Jobs['schedules:endRuns'],
): Promise<void> {
  const since = performance.now()
  let left: readonly EndOfRuns[] = ends
  do {
    const all = reasonsOf(left)
    const ids = await lightPiece(deps.db, [...all.keys()])
    const reasons = new Map(ids.map((id) => [id, all.get(id)!]))
    await cancelThese(deps, ids, { by: 'coordinator', reason: (id) => reasons.get(id)!, descentInMs: 0 })
    probe('schedules.ended', { orgId, runs: ids })
    left = await remaining(deps.db, left, reasons)
  } while (left.length > 0 && performance.now() - since < TURN_MS)
  if (left.length > 0) await deps.db.begin((tx) => enqueueTurn(tx, { orgId, ends: [...left] }))
}

/** The first of them, and what the log of each says. */
function reasonsOf(ends: readonly EndOfRuns[]): Map<RunId, string> {
  const all = ends.flatMap(({ schedule, newRun, runIds }) =>
    runIds.map((id) => [id as RunId, `the schedule ${schedule} has started ${newRun} in its place`] as const),
  )
  return new Map(all.slice(0, AT_ONCE))
}

/** Without those that were ended; of which there are older ones, these are found. */
async function remaining(db: Db, ends: readonly EndOfRuns[], ended: ReadonlyMap<RunId, string>): Promise<EndOfRuns[]> {
  const found: EndOfRuns[] = []
  for (const end of ends) {
    const runIds = end.runIds.filter((id) => !ended.has(id as RunId))
    if (runIds.length > 0) found.push({ ...end, runIds })
    else if (!end.isAll) found.push(...(await older(db, end)))
  }
  return found
}

async function older(db: Db, { runIds: seen, ...end }: EndOfRuns): Promise<EndOfRuns[]> {
  const id = end.schedule as ScheduleId
  const found = await unfinishedOf(db, [{ id, most: FOUND_AT_ONCE, before: seen.at(-1) as RunId }])
  const runIds = found.get(id)?.toReversed() ?? []
  return runIds.length === 0 ? [] : [{ ...end, runIds, isAll: runIds.length < FOUND_AT_ONCE }]
}
