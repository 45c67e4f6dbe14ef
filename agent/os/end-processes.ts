import { setTimeout as delay } from 'node:timers/promises'
import { isReplaced, isRunning, type ProcessMark } from './process-id.ts'
import { MountViews } from './mounts.ts'
import { findPids, isMember, markerOf } from './process-table.ts'

const PROOF_MS = 5_000
const SWEEP_ROUNDS = 20

/** Kills what is left of a group and proves it empty. False when something survived until the deadline. */
export async function endGroup(pgid: number): Promise<boolean> {
  const deadline = performance.now() + PROOF_MS
  for (let wait = 1; ; wait = Math.min(wait * 2, 100)) {
    if (!signal(-pgid, 'SIGKILL')) return true
    if (wait > 4 && (await findPids((pid) => isMember(pid, pgid))).length === 0) return true
    if (performance.now() > deadline) return false
    await delay(wait)
  }
}

/** Kills this very process, and none that has its number by now. */
export function killProcess(mark: ProcessMark): void {
  if (!isReplaced(mark)) signal(mark.pid, 'SIGKILL')
}

/**
 * Kills one process and proves that it has ended. False when it survived until the deadline. The first process of a pid
 * namespace ends last of all that is in there, whatever these have done: the kernel kills them with it and waits.
 */
export async function endProcess(mark: ProcessMark): Promise<boolean> {
  const deadline = performance.now() + PROOF_MS
  for (let wait = 1; isRunning(mark); wait = Math.min(wait * 2, 100)) {
    if (performance.now() > deadline) return false
    signal(mark.pid, 'SIGKILL')
    await delay(wait)
  }
  return true
}

export interface Sought {
  marker: string
  /** Whoever works in this folder belongs to the run too, even with an environment of its own. */
  workspace: string
}

/** Descendants of a program, wherever they have gone. */
export function findStrays(sought: Sought, except = 0): Promise<number[]> {
  const isStray = strayOf(sought)
  return findPids((pid) => pid !== except && isStray(pid))
}

/** For one look. */
function strayOf({ marker, workspace }: Sought): (pid: number) => boolean {
  const views = new MountViews()
  return (pid) => pid !== process.pid && (markerOf(pid) === marker || views.isInside(pid, workspace))
}

/** Kills them. In rounds, because they may be starting others just now. False when some are there to the end. */
export async function sweep(sought: Sought): Promise<boolean> {
  for (let round = 0; round < SWEEP_ROUNDS; round++) {
    const isStray = strayOf(sought)
    const killed = await findPids((pid) => isStray(pid) && killFound(pid))
    if (killed.length === 0) return true
    await delay(Math.min(5 * 2 ** round, 200))
  }
  return false
}

/** Kills everything that bears a marker of this agent and belongs to no process that it still has. The number killed. */
export async function sweepForgotten(prefix: string, isKnown: (marker: string) => boolean): Promise<number> {
  const killed = await findPids((pid) => {
    const marker = pid === process.pid ? null : markerOf(pid)
    return marker !== null && marker.startsWith(prefix) && !isKnown(marker) && killFound(pid)
  })
  return killed.length
}

/** Within a look: its number may be another's afterwards. */
export function killFound(pid: number): true {
  signal(pid, 'SIGKILL')
  return true
}

/** False when there is nobody to signal. */
export function signal(pid: number, name: NodeJS.Signals): boolean {
  try {
    return process.kill(pid, name)
  } catch (error) {
    // EPERM: somebody is there, under another user. The caller's deadline decides.
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}
