import { createHash } from 'node:crypto'
import { accessSync, constants, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { ourLocationOf } from '../os/mounts.ts'
import { parentOf } from '../os/process-table.ts'

/** What limits are made of. `cgroup.kill` needs none of them. */
const CONTROLLERS = ['memory', 'cpu', 'pids'] as const
export type Controller = (typeof CONTROLLERS)[number]

/** Where this agent makes its groups, and what these can limit. */
export interface CgroupFolder {
  folder: string
  controllers: readonly Controller[]
}

export type FoundCgroup = CgroupFolder | { reason: string }

interface Mount {
  root: string
  point: string
}

/** Takes this agent into a group of its own below the one it was given, so that others can be made beside it. */
export function openCgroup(home: string, setting: string): FoundCgroup {
  try {
    const base = findBase(setting)
    if ('reason' in base) return base
    const folder = path.join(base.folder, runsFolder(home))
    if (base.mustLeave) moveInto(path.join(base.folder, LEAF), base.folder)
    for (const name of CONTROLLERS) enable(base.folder, name)
    mkdirSync(folder, { recursive: true })
    for (const name of CONTROLLERS) enable(folder, name)
    const controllers = CONTROLLERS.filter((name) => namesIn(folder, 'cgroup.subtree_control').includes(name))
    return { folder, controllers }
  } catch (error) {
    return { reason: `no cgroup could be made: ${error instanceof Error ? error.message : String(error)}` }
  }
}

/** What `openCgroup` would find, for whoever only looks. */
export function seeCgroup(home: string, setting: string): FoundCgroup {
  try {
    const base = findBase(setting)
    if ('reason' in base) return base
    const controllers = CONTROLLERS.filter((name) => namesIn(base.folder, 'cgroup.controllers').includes(name))
    return { folder: path.join(base.folder, runsFolder(home)), controllers }
  } catch (error) {
    return {
      reason: `the cgroups of this host cannot be seen: ${error instanceof Error ? error.message : String(error)}`,
    }
  }
}

/** Where earlier agents of this state folder may have left groups. Nothing is made. */
export function formerCgroups(home: string, setting: string): string[] {
  const seen = seeCgroup(home, setting)
  if ('reason' in seen) return []
  // Before, the folder had its name from the path of the state folder.
  return [seen.folder, path.join(path.dirname(seen.folder), named(home))]
}

const LEAF = 'agent'

/** Of this state folder alone: several agents may share a machine, and in containers they may have the same path. */
export function runsFolder(home: string): string {
  return named(ourLocationOf(home) ?? home)
}

const named = (home: string) => `windlass-runs-${createHash('sha256').update(home).digest('hex').slice(0, 12)}`

interface Base {
  folder: string
  /** Processes lie in it, this agent among them; with those in it nothing can be handed on to groups below. */
  mustLeave: boolean
}

function findBase(setting: string): Base | { reason: string } {
  if (setting === 'off') return { reason: 'cgroups are switched off by WINDLASS_AGENT_CGROUP' }
  if (setting !== 'auto') return given(setting)
  const mount = mountIn(readFileSync('/proc/self/mountinfo', 'utf8'))
  const own = /^0::(\/.*)$/m.exec(readFileSync('/proc/self/cgroup', 'utf8'))?.[1]
  if (!mount || own === undefined) return { reason: 'this host has no cgroup v2' }
  const folder = below(mount, own)
  if (folder === undefined) return { reason: `the agent's cgroup ${own} cannot be seen from here` }
  return ofOwn(folder, mount.point)
}

function given(folder: string): Base | { reason: string } {
  if (!path.isAbsolute(folder)) return { reason: `WINDLASS_AGENT_CGROUP must be an absolute path, and is ${folder}` }
  if (!isWritable(folder)) return { reason: `WINDLASS_AGENT_CGROUP: ${folder} is no cgroup that the agent may change` }
  return { folder, mustLeave: pidsIn(folder).includes(process.pid) }
}

function ofOwn(folder: string, mountPoint: string): Base | { reason: string } {
  const parent = path.dirname(folder)
  // systemd's `DelegateSubgroup=agent`, or this very agent's earlier life.
  if (path.basename(folder) === LEAF && isWritable(parent) && pidsIn(parent).length === 0)
    return { folder: parent, mustLeave: false }
  const isTop = isTopmost(folder)
  if (!isTop && isWritable(folder) && (folder === mountPoint || pidsIn(folder).every(isOurs)))
    return { folder, mustLeave: true }
  if (isTopmost(mountPoint) && isWritable(mountPoint)) return { folder: mountPoint, mustLeave: false }
  return { reason: NOT_OURS }
}

const NOT_OURS =
  'the agent may not make cgroups here. Run it as the systemd unit that `install.sh` writes (it has Delegate=yes), or give it a cgroup with WINDLASS_AGENT_CGROUP'

/** Only the topmost group of a machine has no type; the one that a container takes for the topmost has. */
function isTopmost(folder: string): boolean {
  try {
    accessSync(path.join(folder, 'cgroup.type'), constants.F_OK)
    return false
  } catch {
    return true
  }
}

function isWritable(folder: string): boolean {
  try {
    for (const name of ['.', 'cgroup.procs', 'cgroup.subtree_control'])
      accessSync(path.join(folder, name), constants.W_OK)
    return true
  } catch {
    return false
  }
}

/** This process, one below it, or one that started it, such as a service manager's shell. */
function isOurs(pid: number): boolean {
  return isBelow(pid, process.pid) || isBelow(process.pid, pid)
}

function isBelow(pid: number, ancestor: number): boolean {
  for (let each = pid; each > 0; each = parentOf(each)) if (each === ancestor) return true
  return false
}

function moveInto(leaf: string, from: string): void {
  mkdirSync(leaf, { recursive: true })
  for (const pid of pidsIn(from)) {
    try {
      writeFileSync(path.join(leaf, 'cgroup.procs'), String(pid))
    } catch (error) {
      // It has ended meanwhile.
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
    }
  }
}

/** A controller that is not to be had is no error: what it would have limited is said to be without limit. */
function enable(folder: string, controller: Controller): void {
  if (!namesIn(folder, 'cgroup.controllers').includes(controller)) return
  if (namesIn(folder, 'cgroup.subtree_control').includes(controller)) return
  try {
    writeFileSync(path.join(folder, 'cgroup.subtree_control'), `+${controller}`)
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? ''
    if (!['EBUSY', 'EACCES', 'EPERM', 'ENOENT', 'EINVAL', 'EOPNOTSUPP'].includes(code)) throw error
  }
}

function namesIn(folder: string, name: string): string[] {
  return readFileSync(path.join(folder, name), 'utf8').split(/\s+/).filter(Boolean)
}

export function pidsIn(folder: string): number[] {
  return namesIn(folder, 'cgroup.procs').map(Number)
}

/** A line is: id, parent, device, root, mount point, options …, `-`, type, source, options. Spaces in paths come as \040. */
export function mountIn(mountinfo: string, kind = /^cgroup2 /): Mount | undefined {
  for (const line of mountinfo.split('\n')) {
    const [before = '', after = ''] = line.split(' - ')
    const [, , , root, point] = before.split(' ')
    if (kind.test(after) && root && point) return { root: plain(root), point: plain(point) }
  }
  return undefined
}

function plain(text: string): string {
  return text.replace(/\\(\d{3})/g, (_, octal: string) => String.fromCharCode(parseInt(octal, 8)))
}

export function below({ root, point }: Mount, own: string): string | undefined {
  if (own.split('/').includes('..')) return undefined
  if (root === '/') return path.join(point, own)
  if (own === root || own.startsWith(`${root}/`)) return path.join(point, own.slice(root.length))
  // In a namespace of its own the path is told from there.
  return path.join(point, own)
}
