import path from 'node:path'
import { probe } from '@windlass/shared/probe.ts'
import type { UidRange } from '../isolation/plan.ts'
import { launch, type Launched } from './process.ts'
import { sinceBootMs } from '../takeover/records.ts'
import { MARKER } from './environment.ts'
import { signal } from './end-processes.ts'

/**
 * Outlives the agent by a moment: when the agent's end of its pipe closes, by whatever cause, everything on its list is killed,
 * and what is in the agent's cgroups. Then whatever bears the agent's marker or is a user of its runs, as far as /proc can be
 * read. A shell, because it is everywhere and weighs nothing.
 */
const SCRIPT = `
list=' ' kept=' ' until=0
while read -r word pid; do
  # With 1 or nothing in its place, a kill would mean every process there is.
  case $pid in '' | *[!0-9]*) continue ;; esac
  [ "$word" = lease ] || [ "$pid" -gt 1 ] || continue
  case $word in
    add) list="$list$pid " ;;
    keep) kept="$kept$pid " ;;
    del) case $list in *" $pid "*) list="\${list%%" $pid "*} \${list#*" $pid "}" ;; esac ;;
    drop) case $kept in *" $pid "*) kept="\${kept%%" $pid "*} \${kept#*" $pid "}" ;; esac ;;
    lease) read -r up rest < /proc/uptime && until=$((\${up%.*} + pid)) ;;
  esac
done
for pid in $list; do
  case $kept in *" $pid "*) ;; *) kill -s KILL -- "-$pid" 2>/dev/null ;; esac
done
while [ "$kept" != ' ' ] && read -r up rest < /proc/uptime && [ "\${up%.*}" -lt "$until" ]; do
  left=
  for pid in $kept; do kill -s 0 -- "-$pid" 2>/dev/null && left=1; done
  [ -n "$left" ] || break
  sleep 1
done
for pid in $list; do kill -s KILL -- "-$pid" 2>/dev/null; done
[ -z "$2" ] || for file in "$2".*/cgroup.kill; do echo 1 > "$file"; done 2>/dev/null
[ -d /proc/self ] || exit 0
[ -z "$3" ] || for file in /proc/[0-9]*/status; do
  while read -r word real rest; do
    [ "$word" = Uid: ] || continue
    if [ "$real" -ge "$3" ] && [ "$real" -le "$4" ]; then
      pid=\${file#/proc/}
      kill -9 "\${pid%/status}"
    fi
    break
  done < "$file"
done 2>/dev/null
for round in 1 2 3; do
  for file in $(grep -lsa "$1" /proc/[0-9]*/environ); do
    pid=\${file#/proc/}
    pid=\${pid%/environ}
    [ "$pid" = $$ ] || kill -9 "$pid" 2>/dev/null
  done
done
[ -z "$2" ] || rmdir "$2".* "\${2%/*}" 2>/dev/null
`

const RESTART_MS = 200

export interface Reaper {
  add(pgid: number): void
  del(pgid: number): void
  /** One that is kept lives on until the lease is over: the next agent may come for it, and ends this reaper then. */
  keep(pgid: number, isKept: boolean): void
  leaseUntil(untilMs: number): void
  pid(): number | undefined
  close(): Promise<void>
}

export function startReaper(options: {
  cwd: string
  path: string
  markerPrefix: string
  /** Folder of the agent's cgroups. */
  cgroups: string | undefined
  uids: UidRange | null
  onRestart: () => void
  onStart?: (pid: number) => void
}): Reaper {
  const groups = new Set<number>()
  const kept = new Set<number>()
  let lease = ''
  let isClosed = false
  let child = start()

  function start(): Launched {
    const { uids, cgroups, markerPrefix } = options
    const ownCgroups = cgroups === undefined ? '' : path.join(cgroups, markerPrefix)
    const range = uids ? [String(uids.first), String(uids.last)] : []
    const args = ['-c', SCRIPT, 'reaper', `${MARKER}=${markerPrefix}`, ownCgroups, ...range]
    const started = launch({
      file: '/bin/sh',
      args,
      cwd: options.cwd,
      env: { PATH: options.path },
      morePipes: 0,
      stdin: 'pipe',
    })
    started.stdout.resume()
    started.stderr.resume()
    // A reaper that is gone says so by its exit; its pipe has nothing to add.
    started.stdin?.on('error', () => {})
    void started.exited.then(restart)
    for (const pgid of groups) started.stdin?.write(`add ${pgid}\n`)
    for (const pgid of kept) started.stdin?.write(`keep ${pgid}\n`)
    started.stdin?.write(lease)
    if (started.pid !== undefined) options.onStart?.(started.pid)
    return started
  }

  function restart(): void {
    if (isClosed) return
    options.onRestart()
    const timer = setTimeout(() => {
      if (isClosed) return
      child = start()
      probe('reaper.restarted', { pid: child.pid })
    }, RESTART_MS)
    timer.unref()
  }

  return {
    add: (pgid) => {
      groups.add(pgid)
      child.stdin?.write(`add ${pgid}\n`)
    },
    del: (pgid) => {
      groups.delete(pgid)
      child.stdin?.write(`del ${pgid}\n`)
      if (kept.delete(pgid)) child.stdin?.write(`drop ${pgid}\n`)
    },
    keep: (pgid, isKept) => {
      if (isKept === kept.has(pgid)) return
      if (isKept) kept.add(pgid)
      else kept.delete(pgid)
      child.stdin?.write(`${isKept ? 'keep' : 'drop'} ${pgid}\n`)
    },
    leaseUntil: (untilMs) => {
      // Whole seconds, and never one too many.
      lease = `lease ${Math.max(0, Math.floor((untilMs - sinceBootMs()) / 1000) - 1)}\n`
      child.stdin?.write(lease)
    },
    pid: () => child.pid,
    close: async () => {
      isClosed = true
      // Whatever is left on the list is to wait for nobody.
      child.stdin?.end('lease 0\n')
      const timer = setTimeout(() => child.pid && signal(-child.pid, 'SIGKILL'), 2_000)
      await child.exited
      clearTimeout(timer)
    },
  }
}
