import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { pause } from '@windlass/shared/time.ts'
import type { RunLimits } from '@windlass/shared/model/pool.ts'
import { signal } from '../os/end-processes.ts'
import { pidsIn } from './cgroup-folder.ts'
import type { Controller } from './cgroup-folder.ts'
import { fileSystemsEnder, STUCK_MS } from './fuse.ts'
import type { RunUsers } from './fuse.ts'

/** The cgroup of one process and of all that descend from it: none of them can leave it. */
export interface Cgroup {
  folder: string
  /** Whoever writes `0` into it is in the group. */
  procsFile: string
  pids(): number[]
  kill(): void
  /** The kernel has killed because there was too little memory. */
  isOutOfMemory(): boolean
  /** Kills it and proves it empty; then it is gone. False when something is in it to the end. */
  end(): Promise<boolean>
}

const MIB = 1024 * 1024
const PERIOD_US = 100_000
const PROOF_MS = 5_000
/** What a process of ours has besides the program: threads of Node, and two processes of bubblewrap. */
export const RUNTIME_TASKS = 16

export interface CgroupParts {
  controllers: readonly Controller[]
  limits: RunLimits
  /** Null where runs have no users of their own. */
  runs: RunUsers | null
}

export function makeCgroup(folder: string, { controllers, limits, runs }: CgroupParts): Cgroup {
  mkdirSync(folder)
  try {
    writeLimits(folder, controllers, limits)
  } catch (error) {
    rmdirSync(folder)
    throw error
  }
  return cgroupAt(folder, runs)
}

/** One that is there already. */
export function cgroupAt(folder: string, runs: RunUsers | null): Cgroup {
  return {
    folder,
    procsFile: path.join(folder, 'cgroup.procs'),
    pids: () => pidsBelow(folder),
    kill: () => killCgroup(folder),
    isOutOfMemory: () => /^oom_kill [1-9]/m.test(read(folder, 'memory.events')),
    end: () => endCgroup(folder, runs),
  }
}

/**
 * Its limits are gone where systemd before 254 has started this agent: see deploy/install/release-cgroup.sh. What it
 * had in memory by then is not counted any more, only what it takes from now on.
 */
export function limitAgain(folder: string, { controllers, limits }: Omit<CgroupParts, 'runs'>): void {
  try {
    writeLimits(folder, controllers, limits)
  } catch (error) {
    // Nothing is in it any more, and it is gone.
    if (existsSync(folder)) throw error
  }
}

/** Swap counts as memory: a limit that only moves a program to the disk is none. */
export function limitFiles(controllers: readonly Controller[], limits: RunLimits): [file: string, text: string][] {
  const { memoryMb, cpus, processes } = limits
  const has = (name: Controller) => controllers.includes(name)
  const files: [string, string][] = []
  if (memoryMb !== null && has('memory')) {
    files.push(['memory.max', String(memoryMb * MIB)], ['memory.swap.max', '0'], ['memory.oom.group', '1'])
  }
  if (cpus !== null && has('cpu')) files.push(['cpu.max', `${Math.round(cpus * PERIOD_US)} ${PERIOD_US}`])
  if (processes !== null && has('pids')) files.push(['pids.max', String(processes + RUNTIME_TASKS)])
  return files
}

function writeLimits(folder: string, controllers: readonly Controller[], limits: RunLimits): void {
  for (const [file, text] of limitFiles(controllers, limits)) write(path.join(folder, file), text)
}

/** A kernel may be built without an account of swap. */
const OPTIONAL = ['memory.swap.max']

function write(file: string, text: string): void {
  if (!OPTIONAL.includes(path.basename(file)) || existsSync(file)) writeFileSync(file, text)
}

/** Kills all that lies below it but these. */
export async function endCgroupsBelow(
  folder: string,
  runs: RunUsers | null,
  except: readonly string[],
): Promise<boolean> {
  const others = subfolders(folder).map((name) => path.join(folder, name))
  const ended = await Promise.all(others.filter((each) => !except.includes(each)).map((each) => endCgroup(each, runs)))
  return ended.every(Boolean)
}

/** Kills all that is in it and proves it empty; what lies below it too. True at once when there is no such group. */
export async function endCgroup(folder: string, runs: RunUsers | null): Promise<boolean> {
  const deadline = performance.now() + PROOF_MS
  const endFileSystems = fileSystemsEnder(runs)
  for (let waitMs = 1; ; waitMs = Math.min(waitMs * 2, 100)) {
    if (removed(folder)) return true
    killCgroup(folder)
    if (performance.now() > deadline) return false
    if (waitMs > STUCK_MS) await endFileSystems(pidsBelow(folder))
    await pause(waitMs)
  }
}

function killCgroup(folder: string): void {
  try {
    writeFileSync(path.join(folder, 'cgroup.kill'), '1')
  } catch {
    // Linux before 5.14 has no such file. Whoever is faster than this is met in the next round.
    for (const pid of pidsBelow(folder)) signal(pid, 'SIGKILL')
  }
}

/** Programs may have made groups of their own. The kernel removes none that holds a process. */
function removed(folder: string): boolean {
  for (const name of subfolders(folder)) removed(path.join(folder, name))
  try {
    rmdirSync(folder)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ENOENT'
  }
}

function pidsBelow(folder: string): number[] {
  try {
    return [...pidsIn(folder), ...subfolders(folder).flatMap((name) => pidsBelow(path.join(folder, name)))]
  } catch {
    // The group is gone, and nobody is in it.
    return []
  }
}

function subfolders(folder: string): string[] {
  try {
    const entries = readdirSync(folder, { withFileTypes: true })
    return entries.filter((entry) => entry.isDirectory()).map((entry) => entry.name)
  } catch {
    return []
  }
}

function read(folder: string, name: string): string {
  try {
    return readFileSync(path.join(folder, name), 'utf8')
  } catch {
    // Without the controller there is no such file.
    return ''
  }
}
