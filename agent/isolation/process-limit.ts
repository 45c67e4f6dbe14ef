import path from 'node:path'
import type { RunLimits } from '@windlass/shared/model/pool.ts'
import { readOrNothing } from '../os/process-id.ts'
import { RUNTIME_TASKS } from './cgroup.ts'
import { below, mountIn } from './cgroup-folder.ts'

/** Bounds of `processes` in `RunLimits`. */
const LEAST = 8
const MOST = 1_000_000

/**
 * Limits of a run for whose processes nobody has set one: with its runtime it may have half of what the agent and all
 * its runs may have together. A run that takes all leaves none for the other runs, nor for what is to end it.
 */
export function withProcessLimit(limits: RunLimits, pid?: number): RunLimits {
  const most = limits.processes === null ? mostTasks(pid) : undefined
  if (most === undefined) return limits
  // The agent's own limit of processes for each user; only root could raise it.
  const count = Math.min(Math.floor(most / 2), mostOfUser(pid)) - RUNTIME_TASKS
  return { ...limits, processes: Math.min(Math.max(LEAST, count), MOST) }
}

/**
 * Number of processes and threads that a process may have around it: what its cgroups and the kernel allow, as far as
 * that can be seen from here. The limit of a pod cannot: it lies above the topmost cgroup of its containers.
 */
function mostTasks(pid: number | 'self' = 'self'): number | undefined {
  const ofKernel = ['pid_max', 'threads-max'].map((name) => numberIn(`/proc/sys/kernel/${name}`))
  const seen = [...ofKernel, ...foldersOf(pid).map((folder) => numberIn(path.join(folder, 'pids.max')))]
  const set = seen.filter((each) => each !== undefined)
  return set.length === 0 ? undefined : Math.min(...set)
}

function mostOfUser(pid: number | 'self' = 'self'): number {
  const [, most] = /^Max processes +(\d+)/m.exec(readOrNothing(`/proc/${pid}/limits`) ?? '') ?? []
  return most === undefined ? Infinity : Number(most)
}

/** Undefined also where a cgroup says `max`. */
function numberIn(file: string): number | undefined {
  const number = Number.parseInt(readOrNothing(file) ?? '', 10)
  return Number.isNaN(number) ? undefined : number
}

/** Where cgroups of either version say how many processes they may have: its own, and all above. */
const KINDS = [
  { group: /^0::(\/.*)$/m, mount: /^cgroup2 / },
  { group: /^\d+:(?:[^:\n]*,)?pids(?:,[^:\n]*)?:(\/.*)$/m, mount: /^cgroup \S+ (?:\S*,)?pids(?:,|$)/ },
]

function foldersOf(pid: number | 'self'): string[] {
  const groups = readOrNothing(`/proc/${pid}/cgroup`) ?? ''
  const mounts = readOrNothing('/proc/self/mountinfo') ?? ''
  return KINDS.flatMap(({ group, mount: kind }) => {
    const mount = mountIn(mounts, kind)
    const own = group.exec(groups)?.[1]
    const folder = mount && own !== undefined ? below(mount, own) : undefined
    return mount && folder !== undefined ? upTo(mount.point, folder) : []
  })
}

function upTo(top: string, folder: string): string[] {
  const above = path.dirname(folder)
  return folder === top || above === folder ? [folder] : [folder, ...upTo(top, above)]
}
