import path from 'node:path'
import { probe } from '@windlass/shared/probe.ts'
import { killerOf } from '../../isolation/end-users.ts'
import type { UidRange } from '../../isolation/plan.ts'
import { launch, type Launched } from '../../os/process.ts'
import { MARKER } from '../../os/environment.ts'
import { signal } from '../../os/end-processes.ts'
import type { ProcessMark } from '../../os/process-id.ts'
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
  /** First process of a pid namespace, with which all in there ends. */
  addInit(init: ProcessMark): void
  delInit(init: ProcessMark): void
  /** One that is kept lives on until the lease is over: the next agent may come for it, and ends this reaper then. */
  keep(pgid: number, isSpared: boolean): void
  /** In milliseconds since the machine's start. */
  leaseUntil(untilMs: number): void
  /**
   * Everything is ended then, unless another time is told before, in milliseconds since the machine's start. Undefined:
   * nothing is. Where there is no /proc, an agent that stands still has programs that go on.
   */
  fenceAt(atMs: number | undefined): void
  pid(): number | undefined
  close(): Promise<void>
  /** Goes on as if this agent had been killed. */
  leave(): void
}

/** Hundredths of a second, as in /proc/uptime. */
const fenceTime = (atMs: number) => Math.ceil(atMs / 10)
/** Whole seconds since the machine's start, and never one too many. */
const leaseEnd = (untilMs: number) => Math.max(0, Math.floor(untilMs / 1000) - 1)

interface ReaperOptions {
  cwd: string
  path: string
  markerPrefix: string
  /** Folder of the agent's cgroups. */
  cgroups: string | undefined
  uids: UidRange | null
  /** Groups of the agent before this one: they are kept from the first moment, until their lease is over. */
  found: { pgids: readonly number[]; untilMs: number }
  onRestart: () => void
  onStart?: (pid: number) => void
}

interface Charge {
  groups: Iterable<number>
  spared: Iterable<number>
  inits: Iterable<string>
  untilMs: number
  fencedAtMs: number
}

/** All that it has to know comes with its start: an agent may be killed before it has told more. */
function launchScript({ uids, cgroups, markerPrefix, cwd, path: PATH }: ReaperOptions, charge: Charge): Launched {
  const ownCgroups = cgroups === undefined ? '' : path.join(cgroups, markerPrefix)
  const own = [`${MARKER}=${markerPrefix}`, ownCgroups, ...(uids ? [uids.first, uids.last] : ['', ''])]
  const lists = [charge.groups, charge.spared].map((pgids) => [...pgids].join(' '))
  const times = [leaseEnd(charge.untilMs), fenceTime(charge.fencedAtMs)]
  const killer = uids ? killerOf([uids]) : []
  const args = [...own, ...lists, ...times, [...charge.inits].join(' '), ...killer].map(String)
  const started = launch({
    file: '/bin/sh',
    args: ['-c', REAPER_SCRIPT, 'reaper', ...args],
    cwd,
    env: { PATH },
    morePipes: 0,
    stdin: 'pipe',
  })
  started.stdout.resume()
  started.stderr.resume()
  // A reaper that is gone says so by its exit; its pipe has nothing to add.
  started.stdin?.on('error', () => {})
  return started
}

export function startReaper(options: ReaperOptions): Reaper {
  const { pgids, untilMs: foundUntilMs } = options.found
  const groups = new Set(pgids)
  const spared = new Set(pgids)
  const inits = new Set<string>()
  let untilMs = foundUntilMs
  // Should this agent stand still before it has told any other time.
  let fencedAtMs = pgids.length > 0 ? untilMs : 0
  let isClosed = false
  let child = start()

  function start(): Launched {
    const started = launchScript(options, { groups, spared, inits, untilMs, fencedAtMs })
    void started.exited.then(restart)
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
      if (groups.has(pgid)) return
      groups.add(pgid)
      child.stdin?.write(`add ${pgid}\n`)
    },
    del: (pgid) => {
      groups.delete(pgid)
      child.stdin?.write(`del ${pgid}\n`)
      if (spared.delete(pgid)) child.stdin?.write(`drop ${pgid}\n`)
    },
    addInit: ({ pid, started }) => {
      inits.add(`${pid}:${started}`)
      child.stdin?.write(`init ${pid} ${started}\n`)
    },
    delInit: ({ pid, started }) => {
      inits.delete(`${pid}:${started}`)
      child.stdin?.write(`over ${pid} ${started}\n`)
    },
    keep: (pgid, isSpared) => {
      if (isSpared === spared.has(pgid)) return
      if (isSpared) spared.add(pgid)
      else spared.delete(pgid)
      child.stdin?.write(`${isSpared ? 'keep' : 'drop'} ${pgid}\n`)
    },
    leaseUntil: (nextMs) => {
      untilMs = nextMs
      child.stdin?.write(`lease ${leaseEnd(untilMs)}\n`)
    },
    fenceAt: (atMs = 0) => {
      if (Math.abs(atMs - fencedAtMs) < FENCE_NOISE_MS) return
      fencedAtMs = atMs
      child.stdin?.write(`fence ${fenceTime(fencedAtMs)}\n`)
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
    leave: () => {
      isClosed = true
      child.stdin?.end()
    },
  }
}
