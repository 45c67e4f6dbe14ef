import type { Log } from '@windlass/shared/log.ts'
import type { AgentSettings } from '@windlass/shared/wire/agent.ts'
import type { Sleeps } from '../link/sleeps.ts'
import { sinceBootMs } from '../os/process-id.ts'
import type { Processes } from '../run/hosts/processes.ts'
import type { AgentRun } from '../run/agent-run.ts'
import type { AgentRuns } from '../run/agent-runs.ts'
import type { Lease } from '../takeover/records.ts'
import type { Beats } from './beats.ts'

/** What the leases of runs hang on. */
export interface FenceNeeds {
  settings: { readonly current: AgentSettings }
  agentRuns: AgentRuns
  beats: Beats
  sleeps: Sleeps
  processes: Pick<Processes, 'fenceAt'>
  log: Log
}

/**
 * Called in a loop, when leases begin or were extended, and before anything is said or obeyed by which a lease could
 * seem to hold: a suspended agent must not wake up and renew.
 */
export function fence(deps: FenceNeeds): void {
  deps.sleeps.look()
  const fenceMs = fenceOf(deps)
  const late = deps.agentRuns.all().filter((agentRun) => agentRun.isHeld && silenceMs(deps, agentRun) > fenceMs)
  tellReaper(deps, fenceMs)
  if (late.length === 0) return
  deps.log.error('runs.fenced', { runs: late.map((agentRun) => agentRun.offer.run), fenceMs })
  for (const agentRun of late) agentRun.end('fenced')
}

/** We come first, by as much, and say what was fenced. By default the coordinator waits for 25 s after the fence. */
const graceMs = (fenceMs: number) => Math.min(5000, fenceMs / 10)

/** For the case that we stand still from here on. By the latest lease: the others end a heartbeat earlier at most. */
function tellReaper(deps: FenceNeeds, fenceMs: number): void {
  if (deps.agentRuns.size === 0) return deps.processes.fenceAt(undefined)
  const held = deps.agentRuns.all().filter((agentRun) => agentRun.isAnswered && agentRun.isHeld)
  if (held.length === 0) return
  const leftMs = fenceMs - Math.min(...held.map((agentRun) => silenceMs(deps, agentRun)))
  if (leftMs > 0) deps.processes.fenceAt(sinceBootMs() + leftMs + graceMs(fenceMs))
}

/** For how long leases hold yet, as far as is known. Zero or less: they hold no more, or never did. */
export function heldForMs(deps: Pick<FenceNeeds, 'settings' | 'beats' | 'sleeps'>): number {
  const from = deps.beats.heldFrom()
  return fenceOf(deps) - (performance.now() - from + deps.sleeps.since(from))
}

/** To be written down for the next agent, which must not believe that it holds for longer than this one does. */
export function leaseOf(deps: Pick<FenceNeeds, 'settings' | 'beats' | 'sleeps'>): Lease {
  deps.sleeps.look()
  const heldFrom = deps.beats.heldFrom()
  const agoMs = performance.now() - heldFrom + deps.sleeps.since(heldFrom)
  return { fromMs: sinceBootMs() - agoMs, fenceMs: fenceOf(deps) }
}

/** A longer time counts once the coordinator has answered a heartbeat that promised it; a shorter one at once. */
function fenceOf({ settings, beats }: Pick<FenceNeeds, 'settings' | 'beats'>): number {
  return Math.min(settings.current.fenceMs, beats.heldMs() ?? Infinity)
}

/**
 * Since the sending of the last word that is known to have extended the lease. What is not accepted has a deadline of
 * its own.
 */
function silenceMs({ beats, sleeps }: FenceNeeds, agentRun: AgentRun): number {
  if (!agentRun.isAnswered) return 0
  const heldFrom = Math.max(agentRun.acceptSentAt, beats.heldFrom())
  return performance.now() - heldFrom + sleeps.since(heldFrom)
}
