import os from 'node:os'
import type { RunLimits } from '@windlass/shared/model/pool.ts'
import type { EffectiveIsolation } from '@windlass/shared/model/runner.ts'
import { endGroup, endProcess, findStrays, killProcess, signal } from '../os/end-processes.ts'
import { markOf, type ProcessMark } from '../os/process-id.ts'
import { childrenOf, findPids, groupMembers, numberInside, parentOf } from '../os/process-table.ts'
import type { Cgroup } from './cgroup.ts'
import type { Exit } from '../os/process.ts'
import type { Command } from './command.ts'
import type { RunUsers } from './fuse.ts'
import type { InForce } from './probe.ts'
import { endUids, findPidsOf } from './uids.ts'

/** What keeps one process and all that descends from it apart from the rest, and how it is ended as a whole. */
export interface Enclosure {
  readonly effective: EffectiveIsolation
  /** Processes with equal keys may stand in for one another. */
  readonly key: string
  readonly limits: RunLimits
  /** The user that it executes as, where it is not the agent's. */
  readonly uid: number | undefined
  /** Of its cgroup. */
  readonly folder: string | undefined
  /** Nothing in it can change what lies outside, nor leave it: it needs no further search when it has ended. */
  readonly isSealed: boolean
  command: Command
  /**
   * Learns by which process all of it is ended: the first one of its pid namespace, which a program may trace and take
   * out of its process group. To be asked before anything of a program executes; throws where it cannot be seen.
   */
  seal(pid: number): ProcessMark
  /** Whether something lives besides the program. `isLikely`: the program says that it has started others. */
  hasCompany(pid: number, sought: { marker: string; workspace: string; isLikely: boolean }): Promise<boolean>
  /** How the program ended, by the end of the process that was started. */
  exitOf(exit: Exit): Exit
  /** Asks all but the program to end. */
  askOthers(pid: number): void
  kill(pid: number): void
  /** Kills it and proves that nothing is left. False when something survived. */
  end(pid: number | undefined): Promise<boolean>
  /** Whether it was the kernel that ended it, for want of memory. Known after `end`. */
  isOutOfMemory(): boolean
}

export interface EnclosureParts {
  inForce: Pick<InForce, 'key' | 'effective'> & { plan: { limits: RunLimits } }
  uid: number | undefined
  cgroup: Cgroup | undefined
  command: Command
  runs: RunUsers | null
  /** What it had is free for others, unless something of it is still there. */
  onEnd: (isClean: boolean) => void
}

export function makeEnclosure({ inForce, uid, cgroup, command, runs, onEnd }: EnclosureParts): Enclosure {
  const { key, effective, plan } = inForce
  const isInside = effective.level === 'bubblewrap'
  const own = isInside ? OF_BUBBLEWRAP : 1
  let isOutOfMemory = false
  let program: number | undefined
  let init: ProcessMark | undefined

  /** The program's own process: the one that was started, or one inside of it. */
  const programPid = (pid: number) => (program ??= isInside ? programBelow(pid) : pid) ?? pid
  /** What belongs to us and not to the program, and the program itself. */
  const ours = (pid: number) => [pid, ...(isInside ? childrenOf(pid) : []), programPid(pid)]

  async function countAll(pid: number): Promise<number> {
    if (uid !== undefined) return (await findPidsOf(uid)).length
    return 1 + (await countBelow(pid))
  }

  return {
    key,
    effective,
    limits: plan.limits,
    uid,
    folder: cgroup?.folder,
    isSealed: isInside || uid !== undefined,
    command,
    seal: (pid) => (init = initBelow(pid)),
    async hasCompany(pid, { marker, workspace, isLikely }) {
      if (cgroup) return cgroup.pids().length > own
      if (!isLikely) return false
      if (isInside || uid !== undefined) return (await countAll(pid)) > own
      return (await findStrays({ marker, workspace }, pid)).length > 0
    },
    exitOf: (exit) => (isInside ? ofProgram(exit) : exit),
    askOthers(pid) {
      const known = ours(pid)
      for (const other of groupMembers(pid)) if (!known.includes(other)) signal(other, 'SIGTERM')
    },
    kill(pid) {
      cgroup?.kill()
      if (init) killProcess(init)
      signal(-pid, 'SIGKILL')
    },
    async end(pid) {
      isOutOfMemory = cgroup?.isOutOfMemory() ?? false
      if (init) killProcess(init)
      const gone = await Promise.all([
        pid === undefined || endGroup(pid),
        init === undefined || endProcess(init),
        cgroup?.end() ?? true,
        // Nothing has become that user where no process could be started.
        pid === undefined || uid === undefined || cgroup !== undefined || endUids({ first: uid, last: uid }, runs),
      ])
      const isClean = gone.every(Boolean)
      onEnd(isClean)
      return isClean
    },
    isOutOfMemory: () => isOutOfMemory,
  }
}

/** Its watcher outside, its first process inside, and the program. */
const OF_BUBBLEWRAP = 3
/** Inside, the first process is 1 and starts one other before anything else can. */
const INIT_INSIDE = 1
const PROGRAM_INSIDE = 2

/** Bubblewrap says of what was ended by a signal what a shell would say. */
function ofProgram(exit: Exit): Exit {
  if ('failed' in exit || exit.exitCode === null) return exit
  const number = exit.exitCode - 128
  const name = Object.entries(os.constants.signals).find(([, each]) => each === number)?.[0]
  return name === undefined ? exit : { exitCode: null, signal: name }
}

function initBelow(pid: number): ProcessMark {
  const init = childrenOf(pid).find((each) => numberInside(each) === INIT_INSIDE)
  const mark = init === undefined ? undefined : markOf(init)
  if (!mark) throw new Error(`the first process in the pid namespace below process ${pid} cannot be seen`)
  return mark
}

function programBelow(pid: number): number | undefined {
  return childrenOf(pid)
    .flatMap(childrenOf)
    .find((each) => numberInside(each) === PROGRAM_INSIDE)
}

async function countBelow(pid: number): Promise<number> {
  const parents = new Map<number, number>()
  await findPids((each) => {
    parents.set(each, parentOf(each))
    return false
  })
  const children = Map.groupBy(parents.keys(), (each) => parents.get(each))
  const found = new Set([pid])
  for (const each of found) for (const child of children.get(each) ?? []) found.add(child)
  return found.size - 1
}
