import type { OrgId, RunId } from '@windlass/shared/ids.ts'
import type { RunStatus } from '@windlass/shared/model/run.ts'
import type { Config } from '../../config.ts'
import type { Db, Tx } from '../../db/client.ts'
import type { Versions } from '../../workflows/targets.ts'
import type { Acting } from '../../actor.ts'
import { type Change, record } from '../../audit/record.ts'
import { enqueue } from '../../jobs/queue.ts'
import { announce, type AnnounceDeps } from './announce.ts'
import { lockRuns } from './lock.ts'
import { finish, move } from '../rules/transitions.ts'
import type { Moving } from '../rules/run.ts'
import { saveMoves } from './save.ts'
import * as store from '../store/runs.ts'
import { warmVersions } from './versions.ts'

export type CancelDeps = {
  db: Db
  config: Config
  versions: Versions
  tellCancels: (runnerId: string) => Promise<void>
} & AnnounceDeps

/** Who asks, and why: what the log of each run will say. */
export interface CancelAsk {
  by: string
  reason: string
  /** The caller, where it was asked for this very run: only that goes into the audit log. */
  caller?: Acting
}

/** What the coordinator itself stops, with all that it has called. Whoever decides that keeps a record of his own. */
export async function cancelForUs(
  deps: CancelDeps,
  { orgId, runIds }: { orgId: OrgId; runIds: readonly RunId[] },
  reason: string,
): Promise<void> {
  for (let at = 0; at < runIds.length; at += AT_ONCE) {
    const moved = await cancelThese(deps, runIds.slice(at, at + AT_ONCE), { by: 'coordinator', reason })
    for (const { id } of moved) {
      const because = `its parent ${id} was cancelled: ${reason}`
      await cancelDescendants(deps, { orgId, runId: id }, { by: 'coordinator', reason: because })
    }
  }
}

/** Cancelled in one transaction at most. */
const AT_ONCE = 200
/** Later than the request itself needs: the job is for the case that its coordinator is gone. */
const DESCENDANTS_JOB_MS = 10_000

/** A run that is being cancelled calls nothing any more, so this comes to an end. */
export async function cancelDescendants(deps: CancelDeps, of: store.Descent, ask: CancelAsk): Promise<void> {
  for (;;) {
    const ids = await store.descendantsToCancel(deps.db, of, AT_ONCE)
    if (ids.length === 0) return
    await cancelThese(deps, ids, ask)
  }
}

/** Asking twice is no error: what is being cancelled or has ended is left alone, and not among the answers. */
export async function cancelThese(deps: CancelDeps, ids: RunId[], ask: CancelAsk): Promise<Moving[]> {
  await warmVersions(deps, ids)
  const moved = await deps.db.begin(async (tx) => {
    const runs = [...(await lockRuns(tx, ids, ids)).values()].filter((run) => ids.includes(run.id))
    const before = new Map(runs.map((run) => [run.id, run.status]))
    const moved = runs.filter((run) => begin(run, ask))
    await store.leaveQueue(
      tx,
      moved.filter((run) => run.released).map((run) => run.id),
    )
    await saveMoves(tx, moved)
    for (const run of moved) {
      await followUp(tx, deps, run, ask)
      if (ask.caller) await record(tx, ask.caller, cancelled(run, before.get(run.id)!, ask.reason))
    }
    return moved
  })
  announce(deps, moved)
  // The agents hear of it now where they are connected here, and with their next heartbeat in any case.
  const runnerIds = new Set(moved.flatMap((run) => (run.status === 'cancelling' && run.runnerId ? [run.runnerId] : [])))
  for (const runnerId of runnerIds) await deps.tellCancels(runnerId)
  return moved
}

function begin(run: Moving, { by, reason }: CancelAsk): boolean {
  if (['cancelling', 'cancelled', 'completed', 'failed'].includes(run.status)) return false
  const at = Date.now()
  move(run, 'cancelling', at, { by, reason })
  if (run.place === null) finish(run, 'cancelled', at)
  return true
}

function cancelled({ id, status }: Moving, before: RunStatus, reason: string): Change {
  const target = { type: 'run', id }
  return { action: 'runs.cancel', target, before: { status: before }, after: { status, reason } }
}

async function followUp(tx: Tx, deps: CancelDeps, run: Moving, { by, reason }: CancelAsk): Promise<void> {
  await store.noteCancel(tx, run.id, reason)
  if (run.entries > 0) {
    const job = { runId: run.id, orgId: run.orgId, by, reason: `its parent ${run.id} was cancelled` }
    await enqueue(tx, 'runs:cancelDescendants', job, {
      inMs: DESCENDANTS_JOB_MS,
      key: `cancel-descendants:${run.id}`,
      // Large trees take minutes: those of one org keep one of the two who do jobs.
      queue: run.orgId,
    })
  }
  if (run.status === 'cancelling') await setStopDeadline(tx, deps, run)
}

/** Beyond grace and proof an agent that still heartbeats has one lease of time to answer; then its word counts no more. */
export async function setStopDeadline(
  tx: Tx,
  deps: { config: Config; versions: Versions },
  run: Pick<Moving, 'id' | 'epoch' | 'versionId'>,
): Promise<void> {
  const { cancelGraceMs } = (await deps.versions.get(run.versionId)).descriptor
  const inMs = cancelGraceMs + deps.config.leaseMs
  await enqueue(tx, 'runs:cancelDeadline', { runId: run.id, epoch: run.epoch }, { inMs, key: `cancel:${run.id}` })
}
