import type { RunLimits } from '@windlass/shared/model/pool.ts'
import { RUNTIME_TASKS } from './cgroup.ts'
import type { Controller } from './cgroup-folder.ts'
import { namespaceByRoot } from './root-namespace.ts'
import { takesFilters } from './syscall-filter.ts'
import type { Tool } from './tools.ts'
import { asUser } from './uids.ts'

export interface Command {
  file: string
  args: string[]
}

export interface Fences {
  /** `cgroup.procs` of the group that it is to be in. */
  procsFile: string | undefined
  limits: RunLimits
  /** What the cgroup limits. */
  counted: readonly Controller[]
  uid: number | undefined
  /** What its user may read besides its own is of this group. */
  group: number | undefined
  setpriv: Tool | undefined
  /** Of system calls: its file. Without bubblewrap it takes a setpriv that knows of such a thing. */
  filter: string | undefined
  bubblewrap: { file: string; args: string[]; unshare: string | undefined } | undefined
}

/** Where bubblewrap finds the filter. */
const FILTER_FD = 8

/**
 * Enters the cgroup, lowers the limits, and becomes what it was asked to. A shell, because no process of Node can do that to itself, and it
 * is gone by then. A limit that is lower already stays. A dump of memory would hold secrets, and fill the disk. Where
 * the host's memory is used up the kernel is to end programs: of 60 that had 25 MB each it ended the agent first.
 */
const PRELUDE = `
[ -z "$1" ] || echo 0 > "$1" || exit 125
ulimit -c 0
{ echo 1000 > /proc/self/oom_score_adj; } 2>/dev/null || :
[ -z "$2" ] || ulimit -n "$2" 2>/dev/null || :
[ -z "$3" ] || ulimit -u "$3" 2>/dev/null || ulimit -p "$3" 2>/dev/null || :
[ -z "$4" ] || ulimit -f "$4" 2>/dev/null || :
[ -z "$5" ] || ulimit -d "$5" 2>/dev/null || :
[ -z "$6" ] || exec ${FILTER_FD}<"$6"
shift 6
unset PWD OLDPWD SHLVL
exec "$@"
`

/** POSIX counts the size of files in these. */
const BLOCKS_PER_MIB = 2048
const KIB_PER_MIB = 1024
/** Memory that a process of Node asks for without ever touching it: stacks of threads, mostly. */
const UNTOUCHED_MIB = 256

export function fenced({ file, args }: Command, fences: Fences): Command {
  const { bubblewrap, filter } = fences
  const inner = bubblewrap && [bubblewrap.file, ...(filter === undefined ? [] : SECCOMP), ...bubblewrap.args]
  const parameters = [
    ...numbers(fences),
    (bubblewrap && filter) ?? '',
    ...becoming(fences),
    ...(inner ?? []),
    file,
    ...args,
  ]
  return { file: '/bin/sh', args: ['-c', PRELUDE, 'windlass', ...parameters] }
}

const SECCOMP = ['--seccomp', String(FILTER_FD)]

function becoming({ uid, group, setpriv, bubblewrap, filter }: Fences): string[] {
  if (uid === undefined || !setpriv) return []
  const { file, can } = setpriv
  if (bubblewrap) {
    const { unshare } = bubblewrap
    const making = unshare === undefined ? [] : namespaceByRoot(uid, { setpriv: file, unshare })
    return [...making, file, ...asUser(uid, group)]
  }
  const isFiltered = filter !== undefined && can('--seccomp-filter') && takesFilters()
  return [file, ...(isFiltered ? [`--seccomp-filter=${filter}`] : []), ...asUser(uid, group)]
}

/** The number of processes is counted by user: only where a run has one of its own it is a limit for the run. */
function numbers({ procsFile, limits, counted, uid }: Fences): string[] {
  const { openFiles, processes, diskMb, memoryMb } = limits
  const isAlone = uid !== undefined && !counted.includes('pids')
  const figures = [
    openFiles,
    isAlone && processes !== null ? processes + RUNTIME_TASKS : null,
    diskMb === null ? null : diskMb * BLOCKS_PER_MIB,
    counted.includes('memory') || memoryMb === null ? null : (memoryMb + UNTOUCHED_MIB) * KIB_PER_MIB,
  ]
  return [procsFile ?? '', ...figures.map((figure) => String(figure ?? ''))]
}
