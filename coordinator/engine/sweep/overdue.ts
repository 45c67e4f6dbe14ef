import type { OrgId, RunId, RunnerId } from '@windlass/shared/ids.ts'
import { probe } from '@windlass/shared/probe.ts'
import { pause } from '@windlass/shared/time.ts'
import { isConnectionLoss, isLockTimeout } from '../../db/client.ts'
import * as placements from '../store/placements.ts'
import type { Backlog } from '../commit/backlog.ts'
import { lightAndLong } from '../commit/light-piece.ts'
import { type LoseDeps, loseRuns } from '../commit/lose.ts'
import type { LongEnds } from '../commit/long-ends.ts'
import { createPulse } from '../commit/pulse.ts'
import type { RunnerNotes } from '../commit/runner-notes.ts'
import { pulseLimitMs } from '../store/pulse.ts'

type SweepDeps = Parameters<typeof createPulse>[0] &
  LoseDeps & { runnerNotes: RunnerNotes; longEnds: LongEnds; backlog: Backlog }

/** Other coordinators are to know of a backlog before the moment is over in which a loss counts by itself. */
const LATE_PULSE_MS = 500

/**
 * Looks for offers that nobody took and leases that ran out; never before a pulse, which lengthens them after an outage
 * of ours. Pulses do not wait for what is found: a gap between two would look like an outage.
 */
export async function sweepPlacements(deps: SweepDeps, signal: AbortSignal): Promise<void> {
  const pulse = createPulse(deps)
  const begun = Promise.withResolvers<void>()
  const { backlog, config } = deps
  const pulseMs = () => (backlog.isThere() ? Math.min(config.sweepMs, LATE_PULSE_MS) : config.sweepMs)
  const pulsing = again(deps, signal, pulseMs, async () => {
    await pulse()
    begun.resolve()
  })
  void pulsing.then(begun.resolve)
  await begun.promise
  await pause(config.sweepMs, signal)
  const sweeping = again(
    deps,
    signal,
    () => config.sweepMs,
    async () => {
      await sweepOnce(deps)
      probe('sweep.done', { of: 'placements' })
    },
  )
  await Promise.all([pulsing, sweeping])
}

async function again(
  { config, log, backlog }: SweepDeps,
  signal: AbortSignal,
  pauseMs: () => number,
  look: () => Promise<void>,
): Promise<void> {
  let loggedAt = -Infinity
  while (!signal.aborted) {
    try {
      await look()
    } catch (error) {
      if (isConnectionLoss(error)) backlog.lost()
      // In an outage pulses are tried more often.
      if (performance.now() - loggedAt >= config.sweepMs) {
        loggedAt = performance.now()
        log.warn('sweep.failed', { error })
      }
    }
    for (let ms = 0; ms < pauseMs() && !signal.aborted; ms += LATE_PULSE_MS)
      await pause(Math.min(LATE_PULSE_MS, pauseMs() - ms), signal)
  }
}

/** Time for what one look has found. What is left is found by the next one; long journals are ended behind it. */
const LOOK_MS = 1000

async function sweepOnce(deps: SweepDeps): Promise<void> {
  const overdue = await placements.overdue(deps.db, deps.config.offerMs, pulseLimitMs(deps.config))
  const orgs = new Map(overdue.map(({ runId, orgId }) => [runId, orgId]))
  const found = [...orgs.keys()].filter((id) => !deps.longEnds.has(id))
  const { light, long } = await lightAndLong(deps.db, found)
  const since = performance.now()
  const unaccepted: RunnerId[] = []
  while (light.length > 0 && performance.now() - since < LOOK_MS)
    unaccepted.push(...(await loseOverdue(deps, light.shift()!, orgs)))
  await noteUnaccepted(deps, unaccepted)
  const act = async (ids: RunId[]) => noteUnaccepted(deps, await loseOverdue(deps, ids, orgs))
  // An agent that is back by now has said what they were lost by.
  const waiting = long.filter((id) => !deps.longEnds.has(id))
  for (const runId of waiting) deps.longEnds.add({ orgId: orgs.get(runId)!, runIds: [runId], act })
}

/** Locks of runs may be held for long: no other run waits for these, and the next look finds them again. */
const LOCK_MS = 500

/** Answers the runners that had not accepted what they were offered. */
async function loseOverdue(deps: SweepDeps, ids: RunId[], orgs: ReadonlyMap<RunId, OrgId>): Promise<RunnerId[]> {
  const unaccepted: RunnerId[] = []
  try {
    await loseRuns(deps, ids, {
      reason: 'its agent was not heard of until the lease ran out',
      lockMs: LOCK_MS,
      isLost: (placement) => (placement.accepted ? placement.leaseOver : placement.offerLate),
      onLost: (placement) => void (placement.accepted || unaccepted.push(placement.runnerId)),
    })
  } catch (error) {
    if (!isLockTimeout(error)) throw error
    for (const part of await lessThan(deps, ids, orgs)) unaccepted.push(...(await loseOverdue(deps, part, orgs)))
  }
  return unaccepted
}

/** Those of these runs that nobody holds. Where none is held, something that they share may be: org by org. */
async function lessThan({ db }: SweepDeps, ids: RunId[], orgs: ReadonlyMap<RunId, OrgId>): Promise<RunId[][]> {
  if (ids.length === 1) return []
  const free = await placements.unlocked(db, ids)
  if (free.length < ids.length) return free.length > 0 ? [free] : []
  const ofOrgs = [...Map.groupBy(ids, (id) => orgs.get(id)).values()]
  return ofOrgs.length > 1 ? ofOrgs : []
}

async function noteUnaccepted(deps: SweepDeps, runnerIds: RunnerId[]): Promise<void> {
  if (runnerIds.length > 0) await deps.runnerNotes.unaccepted(runnerIds)
}
