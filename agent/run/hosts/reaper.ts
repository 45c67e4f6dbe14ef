import path from 'node:path'
import { probe } from '@windlass/shared/probe.ts'
import type { UidRange } from '../../isolation/plan.ts'
import { launch, type Launched } from '../../os/process.ts'
import { sinceBootMs } from '../../os/process-id.ts'
import { MARKER } from '../../os/environment.ts'
import { signal } from '../../os/end-processes.ts'
import { REAPER_SCRIPT } from './reaper-script.ts'

const RESTART_MS = 200

/** A fence that moves by less is not told again. */
const FENCE_NOISE_MS = 50

/**
 * Outlives the agent by a moment: when the agent's end of its pipe closes, by whatever cause, everything on its list is
 * killed, and what is in the agent's cgroups. Then whatever bears the agent's marker or is a user of its runs, as far
 * as /proc can be read. The same at the fence, when the agent stands still and does not do so itself. A shell, because
 * it is everywhere and weighs nothing.
 */
export interface Reaper {
  add(pgid: number): void
  del(pgid: number): void
  /** One that is kept lives on until the lease is over: the next agent may come for it, and ends this reaper then. */
  keep(pgid: number, isSpared: boolean): void
  leaseUntil(untilMs: number): void
  /**
   * Everything is ended then, unless another time is told before, in milliseconds since the machine's start. Undefined:
   * nothing is. Where there is no /proc, an agent that stands still has programs that go on.
   */
  fenceAt(atMs: number | undefined): void
  pid(): number | undefined
  close(): Promise<void>
}

/** Hundredths of a second, as in /proc/uptime. */
const fenceLine = (atMs: number) => `fence ${Math.ceil(atMs / 10)}\n`

interface ReaperOptions {
  cwd: string
  path: string
  markerPrefix: string
  /** Folder of the agent's cgroups. */
  cgroups: string | undefined
  uids: UidRange | null
  onRestart: () => void
  onStart?: (pid: number) => void
}

function launchScript({ uids, cgroups, markerPrefix, cwd, path: PATH }: ReaperOptions): Launched {
  const ownCgroups = cgroups === undefined ? '' : path.join(cgroups, markerPrefix)
  const range = uids ? [String(uids.first), String(uids.last)] : []
  const args = ['-c', REAPER_SCRIPT, 'reaper', `${MARKER}=${markerPrefix}`, ownCgroups, ...range]
  return launch({ file: '/bin/sh', args, cwd, env: { PATH }, morePipes: 0, stdin: 'pipe' })
}

export function startReaper(options: ReaperOptions): Reaper {
  const groups = new Set<number>()
  const spared = new Set<number>()
  let lease = ''
  let fencedAtMs = 0
  let isClosed = false
  let child = start()

  function start(): Launched {
    const started = launchScript(options)
    started.stdout.resume()
    started.stderr.resume()
    // A reaper that is gone says so by its exit; its pipe has nothing to add.
    started.stdin?.on('error', () => {})
    void started.exited.then(restart)
    for (const pgid of groups) started.stdin?.write(`add ${pgid}\n`)
    for (const pgid of spared) started.stdin?.write(`keep ${pgid}\n`)
    started.stdin?.write(`${lease}${fenceLine(fencedAtMs)}`)
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
      if (spared.delete(pgid)) child.stdin?.write(`drop ${pgid}\n`)
    },
    keep: (pgid, isSpared) => {
      if (isSpared === spared.has(pgid)) return
      if (isSpared) spared.add(pgid)
      else spared.delete(pgid)
      child.stdin?.write(`${isSpared ? 'keep' : 'drop'} ${pgid}\n`)
    },
    leaseUntil: (untilMs) => {
      // Whole seconds, and never one too many.
      lease = `lease ${Math.max(0, Math.floor((untilMs - sinceBootMs()) / 1000) - 1)}\n`
      child.stdin?.write(lease)
    },
    fenceAt: (atMs = 0) => {
      if (Math.abs(atMs - fencedAtMs) < FENCE_NOISE_MS) return
      fencedAtMs = atMs
      child.stdin?.write(fenceLine(fencedAtMs))
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
