import type { OrgId, RunId } from '@windlass/shared/ids.ts'
import type { RunStatus } from '@windlass/shared/model/run.ts'
import type { Config } from '../../config.ts'
import type { Tx } from '../../db/client.ts'
import type { TermsReader, VersionTerms } from '../../workflows/terms.ts'
import type { Acting } from '../../actor.ts'
import { type Change, record } from '../../audit/record.ts'
import type { Deadline } from '../../jobs/queue.ts'
import { enqueueDeadlines } from './enqueue-deadlines.ts'
import { enqueueDescents } from './enqueue-descents.ts'
import { announce } from './announce.ts'
import { lightPiece, lightPieces } from './light-piece.ts'
import { type MoveDeps, moveRunsIn } from './move-runs.ts'
import { finish, move } from '../rules/transitions.ts'
import type { Moving } from '../rules/run.ts'
import * as store from '../store/runs.ts'
import { warmTerms } from './versions.ts'

export type CancelDeps = {
  config: Config
  versionTerms: TermsReader
  tellCancels: (runnerId: string) => Promise<void>
} & MoveDeps

/** Who asks, and why: what the log of each run will say. */
export interface CancelAsk {
  by: string
  reason: string | ((run: RunId) => string)
  /** The caller, where it was asked for this very run: only that goes into the audit log. */
  caller?: Acting
  /** What these runs have called is cancelled by whoever asks. Otherwise a job does it. */
  isDescent?: boolean
  /** When the job begins; by default after whoever asks has had the time to do it first. */
  descentInMs?: number
}

/**
 * What the coordinator itself stops. What it has called is left to jobs, for which nobody waits: one org's trees take
 * seconds. Whoever decides that keeps a record of his own.
 */
export async function cancelForUs(deps: CancelDeps, runIds: readonly RunId[], reason: string): Promise<void> {
  for (let at = 0; at < runIds.length; at += AT_ONCE)
    for (const piece of await lightPieces(deps.db, runIds.slice(at, at + AT_ONCE)))
      await cancelThese(deps, piece, { by: 'coordinator', reason, descentInMs: 0 })
}

/** What runs are told whose parent was cancelled. */
export const becauseOf = (parent: RunId, reason: string) =>
  `its parent ${parent} was cancelled${reason && `: ${reason}`}`

/** Cancelled in one transaction at most. */
export const AT_ONCE = 200
/** Looked up at once. Each look walks the whole tree, so there are few. */
const FOUND_AT_ONCE = 5000
/** Time that a caller waits for what lies below; the rest is done by the job. */
const DESCENT_MS = 5000
/** Later than the request itself needs: the job is for what it has not reached, or for a coordinator that is gone. */
const DESCENDANTS_JOB_MS = 10_000

/**
 * Cancels what lies below a run for `forMs` at the most. True: that was all. A run that is being cancelled calls
 * nothing any more, so this comes to an end.
 */
export async function cancelDescendants(
  deps: CancelDeps,
  of: store.Descent,
  ask: CancelAsk,
  forMs = DESCENT_MS,
): Promise<boolean> {
  const since = performance.now()
  for (;;) {
    const ids = await store.descendantsToCancel(deps.db, of, FOUND_AT_ONCE)
    if (ids.length === 0) return true
    for (let left = ids; left.length > 0;) {
      const piece = await lightPiece(deps.db, left.slice(0, AT_ONCE))
      await cancelThese(deps, piece, { ...ask, isDescent: true })
      if (performance.now() - since > forMs) return false
      left = left.slice(piece.length)
    }
  }
}

/** Asking twice is no error: what is being cancelled or has ended is left alone, and not among the answers. */
export async function cancelThese(deps: CancelDeps, ids: RunId[], ask: CancelAsk): Promise<Moving[]> {
  await warmTerms(deps, ids)
  const moved = await deps.db.begin((tx) => cancelWithin(tx, deps, ids, ask))
  await tellCancelled(deps, moved)
  return moved
}

/** The same within the transaction of somebody who tells, after its commit, those who wait. */
export async function cancelWithin(tx: Tx, deps: CancelDeps, ids: RunId[], ask: CancelAsk): Promise<Moving[]> {
  const { moved } = await moveRunsIn(tx, { ids }, async (_, locked) => {
    const runs = [...locked.values()].filter((run) => ids.includes(run.id))
    const before = new Map(runs.map((run) => [run.id, run.status]))
    const moved = runs.filter((run) => begin(run, ask, deps.databaseClock.now()))
    await store.leaveQueue(
      tx,
      moved.filter((run) => run.released).map((run) => run.id),
    )
    await followUp(tx, deps, moved, ask)
    for (const run of ask.caller ? moved : [])
      await record(tx, ask.caller!, cancelled(run, before.get(run.id)!, reasonOf(ask, run.id)))
    return { moved, answer: undefined }
  })
  return moved
}

export async function tellCancelled(deps: CancelDeps, moved: readonly Moving[]): Promise<void> {
  announce(deps, moved)
  // The agents hear of it now where they are connected here, and with their next heartbeat in any case.
  const runnerIds = new Set(moved.flatMap((run) => (run.status === 'cancelling' && run.runnerId ? [run.runnerId] : [])))
  for (const runnerId of runnerIds) await deps.tellCancels(runnerId)
}

const reasonOf = ({ reason }: CancelAsk, run: RunId) => (typeof reason === 'string' ? reason : reason(run))

function begin(run: Moving, ask: CancelAsk, at: number): boolean {
  if (['cancelling', 'cancelled', 'completed', 'failed'].includes(run.status)) return false
  move(run, 'cancelling', at, { by: ask.by, reason: reasonOf(ask, run.id) })
  if (run.place === null) finish(run, 'cancelled', at)
  return true
}

function cancelled({ id, status }: Moving, before: RunStatus, reason: string): Change {
  const target = { type: 'run', id }
  return { action: 'runs.cancel', target, before: { status: before }, after: { status, reason } }
}

async function followUp(tx: Tx, deps: CancelDeps, moved: Moving[], ask: CancelAsk): Promise<void> {
  const { by, descentInMs = DESCENDANTS_JOB_MS } = ask
  await store.noteCancels(
    tx,
    moved.map(({ id }) => ({ id, reason: reasonOf(ask, id) })),
  )
  const parents = ask.isDescent ? [] : moved.filter((run) => run.entries > 0)
  const descents = parents.map(({ id, orgId }) => ({ runId: id, orgId, by, reason: becauseOf(id, reasonOf(ask, id)) }))
  await enqueueDescents(tx, descents, descentInMs)
  await setStopDeadlines(
    tx,
    deps,
    moved.filter((run) => run.status === 'cancelling'),
  )
}

/** How long after it was asked to stop a run ends in any case. */
export function stopDeadlineMs({ leaseMs }: Pick<Config, 'leaseMs'>, { descriptor }: VersionTerms): number {
  return descriptor.cancelGraceMs + leaseMs
}

/**
 * Beyond grace and proof an agent that still heartbeats has one lease of time to answer; then its word counts no more.
 * One job for those of an org that are due together, and one such job of an org at a time: thousands of runs may be
 * cancelled at once, and others wait for the same workers.
 */
export async function setStopDeadlines(
  tx: Tx,
  deps: { config: Config; versionTerms: TermsReader },
  runs: readonly Pick<Moving, 'id' | 'orgId' | 'epoch' | 'versionId'>[],
): Promise<void> {
  const due = new Map<string, { orgId: OrgId; inMs: number; runs: Deadline[] }>()
  for (const { id, orgId, epoch, versionId } of runs) {
    const inMs = stopDeadlineMs(deps.config, await deps.versionTerms.get(versionId, tx))
    const key = `${orgId} ${inMs}`
    const together = due.get(key) ?? { orgId, inMs, runs: [] }
    together.runs.push({ runId: id, epoch })
    due.set(key, together)
  }
  for (const { inMs, ...payload } of due.values()) await enqueueDeadlines(tx, payload, inMs)
}
