import { randomBytes } from 'node:crypto'
import fs from 'node:fs/promises'
import { availableParallelism } from 'node:os'
import path from 'node:path'
import { endGroup, signal, sweepForgotten } from './end-processes.ts'
import { startHost, type HostProcess } from './host-process.ts'
import type { OnEvents } from './program-output.ts'
import { startReaper } from './reaper.ts'
import { keepIdle } from './reuse.ts'
import type { ProgramStart, RunningProgram, RunPlace } from './program.ts'
import { runProgram } from './run-program.ts'
import { prepareRuntime } from './runtime-files.ts'
import { keepSpares } from './spares.ts'
import { emptyWorkspaces, keepWorkspaces } from './workspace.ts'

export interface ProcessesOptions {
  /** The agent's own folder: the runtime and the runs' workspaces are kept below. */
  home: string
  /** All that programs inherit; see `programEnvironment`. */
  environment: Record<string, string>
  /** Booted processes kept ready. */
  spares?: number
  /** Processes that may wait for another run of their program. */
  idleProcesses?: number
  idleMs?: number
  /** Runs after which a process is retired. */
  runsPerProcess?: number
  /** How long a replay may take, where the program's own timeout is not longer. */
  replayMs?: number
  cores?: number
  /** Node that executes programs, this one by default. */
  execPath?: string
  /** Things that somebody should know about. */
  log?: (name: string, facts?: Record<string, unknown>) => void
}

export interface ProcessesStats {
  running: number
  spares: { booting: number; ready: number }
  idle: number
  /** Processes that survived SIGKILL: the host has a problem that an agent cannot solve. */
  survivors: number
  reaperPid: number | undefined
}

export interface Processes {
  run(start: ProgramStart, onEvents: OnEvents): RunningProgram
  stats(): ProcessesStats
  /** Kills what runs, and resolves when nothing is left. */
  close(): Promise<void>
}

const FORGOTTEN_MS = 10_000
const REPLAY_MS = 60_000
// The largest output an agent may be told to accept, as JSON, with room for the frames around it.
const MOST_FRAME_BYTES = 16 * 1024 * 1024

/** Everything that executes programs on this host. Programs of former lives of the agent are gone: their workspaces go too. */
export async function createProcesses(options: ProcessesOptions): Promise<Processes> {
  const home = path.resolve(options.home)
  const workspaces = path.join(home, 'workspaces')
  const [files] = await Promise.all([prepareRuntime(path.join(home, 'runtime')), emptyWorkspaces(workspaces)])
  const real = { ...files, cwd: path.dirname(files.hostFile), workspaces: await fs.realpath(workspaces) }
  return assemble(options, real)
}

function assemble(options: ProcessesOptions, files: { hostFile: string; cwd: string; workspaces: string }): Processes {
  const log = options.log ?? (() => {})
  const cores = options.cores ?? availableParallelism()
  const markerPrefix = randomBytes(9).toString('hex')
  const hosts = new Map<string, HostProcess>()
  const running = new Set<RunningProgram>()
  const endings = new Set<Promise<unknown>>()
  let started = 0
  let survivors = 0
  let isClosed = false
  let forgotten: NodeJS.Timeout | undefined

  const environment = options.environment
  const workspaces = keepWorkspaces(files.workspaces)
  const reaper = startReaper({
    cwd: files.cwd,
    path: environment.PATH ?? '/usr/bin:/bin',
    markerPrefix,
    onRestart: () => log('reaper.restarted'),
  })
  const spares = keepSpares({
    target: options.spares ?? 1,
    start: () => start('spare'),
    discard,
    mayStart: () => computing() < cores,
    onDeath: () => log('spare.died'),
  })
  const idle = keepIdle({ most: options.idleProcesses ?? 8, idleMs: options.idleMs ?? 60_000, discard })

  function computing(): number {
    return [...running].filter((program) => !program.isParked()).length
  }

  function start(mode: 'spare' | 'now'): HostProcess {
    started += 1
    const execPath = options.execPath ?? process.execPath
    const own = { execPath, hostFile: files.hostFile, cwd: files.cwd, environment, mostFrameBytes: MOST_FRAME_BYTES }
    const host = startHost(own, `${markerPrefix}.${started}`, mode)
    hosts.set(host.marker, host)
    if (host.pid !== undefined) reaper.add(host.pid)
    return host
  }

  function gone(host: HostProcess, isClean: boolean): void {
    hosts.delete(host.marker)
    if (host.pid !== undefined && isClean) reaper.del(host.pid)
    if (!isClean) {
      survivors += 1
      log('program.survived', { pid: host.pid })
    }
    sweepLater()
  }

  /** A process without a run: nothing of value is in it. */
  function discard(host: HostProcess): void {
    if (host.pid !== undefined) signal(-host.pid, 'SIGKILL')
    remember(bury(host))
  }

  async function bury(host: HostProcess): Promise<void> {
    await host.exit
    const isClean = host.pid === undefined || (await endGroup(host.pid))
    host.release()
    gone(host, isClean)
  }

  /** Nobody waits for a folder to go. */
  async function giveBack(folder: string): Promise<void> {
    const removal = workspaces
      .giveBack(folder)
      .catch((error: unknown) => log('workspace.stayed', { folder, error: String(error) }))
    remember(removal)
    await removal
  }

  /** What nobody waits for but the agent's end. */
  function remember(ending: Promise<unknown>): void {
    endings.add(ending)
    void ending.finally(() => endings.delete(ending))
  }

  /** A program can lie about having started others. Such descendants are found here, somewhat later. */
  function sweepLater(): void {
    if (forgotten || isClosed) return
    forgotten = setTimeout(() => {
      forgotten = undefined
      sweepNow()
    }, FORGOTTEN_MS)
    forgotten.unref()
  }

  function sweepNow(): void {
    const killed = sweepForgotten(`${markerPrefix}.`, (marker) => hosts.has(marker))
    if (killed > 0) log('program.strays', { killed })
  }

  async function forget(program: RunningProgram): Promise<void> {
    await program.done
    running.delete(program)
    spares.refillSoon()
  }

  const place: RunPlace = {
    replayMs: options.replayMs ?? REPLAY_MS,
    workspaces: { take: workspaces.take, giveBack },
    take: (wanted) =>
      (wanted.process === 'reuse' ? idle.take(wanted.reuseKey) : undefined) ?? usable(spares.take()) ?? start('now'),
    keep: (served, host) => {
      if (isClosed || host.runs >= (options.runsPerProcess ?? 500)) return false
      idle.put(served.reuseKey, host)
      return true
    },
    parked: () => spares.refillSoon(),
    gone,
  }

  function usable(host: HostProcess | undefined): HostProcess | undefined {
    if (!host?.isTainted()) return host
    discard(host)
    return undefined
  }

  spares.refillSoon()

  return {
    run: (wanted, onEvents) => {
      if (isClosed) throw new Error('no program can be started: the agent is closing')
      const program = runProgram(place, wanted, onEvents)
      running.add(program)
      void forget(program)
      return program
    },
    stats: () => ({
      running: running.size,
      spares: spares.count(),
      idle: idle.count(),
      survivors,
      reaperPid: reaper.pid(),
    }),
    close: async () => {
      isClosed = true
      for (const program of running) program.kill('shutdown')
      await Promise.all([...running].map((program) => program.done))
      for (const host of [...spares.close(), ...idle.close()]) discard(host)
      await Promise.all(endings)
      clearTimeout(forgotten)
      sweepNow()
      await reaper.close()
    },
  }
}
