import path from 'node:path'
import type { Log } from '@windlass/shared/log.ts'
import { pause } from '@windlass/shared/time.ts'
import { endCgroup, endCgroupsBelow } from '../../isolation/cgroup.ts'
import { formerCgroups } from '../../isolation/cgroup-folder.ts'
import { fileSystemsEnder, runUsers, STUCK_MS } from '../../isolation/fuse.ts'
import type { RunUsers } from '../../isolation/fuse.ts'
import { PLAIN } from '../../isolation/plan.ts'
import type { HostIsolation } from '../../isolation/plan.ts'
import { findInits, findPrograms, type ProgramRecord } from '../../takeover/records.ts'
import { endRanges, without } from '../../isolation/uids.ts'
import { endProcess, killFound } from '../../os/end-processes.ts'
import { MARKER } from '../../os/environment.ts'
import { MountViews } from '../../os/mounts.ts'
import { isRunning } from '../../os/process-id.ts'
import { environmentOf, findPids } from '../../os/process-table.ts'
import { FormerWorkspaces } from './former-workspaces.ts'

const PROOF_MS = 5_000

/**
 * Kills what an earlier agent of this state folder has left running, and proves it gone: only then may its runs be
 * reported as lost. Nearly always its reaper was there first. Where there is no /proc, the reaper is all there is.
 * Users of runs are locked by now: else those of another agent would be killed.
 */
export async function endLeftovers(
  home: string,
  log: Log,
  isolation: HostIsolation = PLAIN,
  spared: readonly ProgramRecord[] = [],
): Promise<void> {
  const runs = runUsers(isolation.uids, log)
  await endWithoutUsers(home, log, { setting: isolation.cgroup, runs }, spared)
  if (runs) await endUsers(runs, spared)
}

/**
 * Before anything is written: on a full disk they take the room that a start needs, and nobody locks users there. The
 * workspaces of those that are gone are being removed when it resolves.
 */
export async function clearFormer(home: string, log: Log, cgroup: string): Promise<FormerWorkspaces> {
  const { programs } = findPrograms(path.join(home, 'lives'))
  await endWithoutUsers(home, log, { setting: cgroup, runs: null }, programs)
  const onStay = (folder: string, error: unknown) => log.warn('workspace.stayed', { folder, error: String(error) })
  const workspaces = new FormerWorkspaces(path.join(home, 'workspaces'), onStay)
  await workspaces.setAside(programs.map(({ workspace }) => path.basename(workspace)))
  return workspaces
}

async function endWithoutUsers(
  home: string,
  log: Log,
  { setting, runs }: { setting: string; runs: RunUsers | null },
  spared: readonly ProgramRecord[],
): Promise<void> {
  await endNamespaces(home, log)
  for (const cgroup of formerCgroups(home, setting))
    if (!(await endGroups(cgroup, runs, spared))) throw unkillable(`those in the cgroup ${cgroup}`)
  // Last: what is gone by then cannot make the look at all processes a long one, see `MountViews`.
  await endMarked(
    home,
    log,
    spared.map(({ process: mark }) => mark.pid),
  )
}

/** A program in a pid namespace may have neither marker nor folder any more. */
async function endNamespaces(home: string, log: Log): Promise<void> {
  for (const { init, forget } of findInits(path.join(home, 'lives'))) {
    if (isRunning(init)) log.warn('leftovers.killed', { pids: [init.pid] })
    if (!(await endProcess(init))) throw unkillable(String(init.pid))
    forget()
  }
}

async function endGroups(cgroup: string, runs: RunUsers | null, spared: readonly ProgramRecord[]): Promise<boolean> {
  const exempt = spared.flatMap(({ cgroup: own }) => own ?? [])
  return exempt.length === 0 ? endCgroup(cgroup, runs) : endCgroupsBelow(cgroup, runs, exempt)
}

async function endUsers(runs: RunUsers, spared: readonly ProgramRecord[]): Promise<void> {
  const exempt = spared.flatMap(({ uid }) => uid ?? [])
  if (!(await endRanges(without(runs, exempt), runs))) throw unkillable(`those of the users ${runs.first}-${runs.last}`)
}

function unkillable(which: string): Error {
  return new Error(`Programs of an earlier agent cannot be killed: ${which}`)
}

async function endMarked(home: string, log: Log, spared: readonly number[]): Promise<void> {
  let deadline: number | undefined
  const endFileSystems = fileSystemsEnder(null)
  for (let waitMs = 5; ; waitMs = Math.min(waitMs * 2, 200)) {
    const views = new MountViews()
    const isSought = (pid: number) => pid !== process.pid && !spared.includes(pid) && isOurs(pid, home, views)
    const pids = await findPids((pid) => isSought(pid) && killFound(pid))
    if (pids.length === 0) return
    // A look may itself take long: what it found has its time from then on.
    deadline ??= performance.now() + PROOF_MS
    if (performance.now() > deadline) throw unkillable(pids.join(', '))
    log.warn('leftovers.killed', { pids })
    if (waitMs > STUCK_MS) await endFileSystems(pids)
    await pause(waitMs)
  }
}

/** A zombie has no environment and no folder any more, so that it does not count. */
function isOurs(pid: number, home: string, views: MountViews): boolean {
  const workspaces = path.join(home, 'workspaces')
  if (views.isInside(pid, workspaces)) return true
  const environment = environmentOf(pid)
  if (!environment.includes(`${MARKER}=`)) return false
  if (views.isInside(pid, home)) return true
  const from = environment.indexOf(`=${workspaces}/`)
  if (from === -1) return false
  const [named = ''] = environment.slice(from + 1).split('\0', 1)
  return views.seesAsWeDo(pid, named)
}
