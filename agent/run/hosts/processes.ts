import { randomBytes } from 'node:crypto'
import fs from 'node:fs/promises'
import { availableParallelism } from 'node:os'
import path from 'node:path'
import { probe } from '@windlass/shared/probe.ts'
import { createIsolation, type Isolation } from '../../isolation/isolation.ts'
import { PLAIN } from '../../isolation/plan.ts'
import type { InForce, Refusal } from '../../isolation/probe.ts'
import { watchSizes } from '../../isolation/workspace-size.ts'
import { goneFrom } from '../../os/gone-from.ts'
import { hostOver, startHost, type HostProcess } from './host-process.ts'
import { startReaper } from './reaper.ts'
import { keepIdle } from './reuse.ts'
import type { Processes, ProcessesOptions, ProcessesStats } from './processes-types.ts'
import type { ProgramStart, RunningProgram, RunPlace } from '../program/program.ts'
import { runProgram } from '../program/run-program.ts'
import { prepareRuntime } from './runtime-files.ts'
import { keepSpares } from './spares.ts'
import { createSweeper } from './sweeper.ts'
import { emptyWorkspaces, keepWorkspaces } from './workspace.ts'

export type { Processes, ProcessesOptions, ProcessesStats }

const MIB = 1024 * 1024
const REPLAY_MS = 60_000
/** Longer than a lease is by default; the reaper ends what is left when that is over. */
const REJOIN_MS = 120_000
// The largest output an agent may be told to accept, as JSON, with room for the frames around it.
const MOST_FRAME_BYTES = 16 * MIB

/** Everything that executes programs on this host. Programs of former lives of the agent are gone: their workspaces go too. */
export async function createProcesses(options: ProcessesOptions): Promise<Processes> {
  const home = path.resolve(options.home)
  const workspaces = path.join(home, 'workspaces')
  const [files] = await Promise.all([
    prepareRuntime(path.join(home, 'runtime')),
    emptyWorkspaces(
      workspaces,
      options.found?.map(({ workspace }) => path.basename(workspace)),
    ),
  ])
  const real = { ...files, cwd: path.dirname(files.hostFile), workspaces: await fs.realpath(workspaces) }
  const { log = () => {}, isolation: host = PLAIN, pool = () => undefined, execPath = process.execPath } = options
  const own = { home: path.dirname(real.workspaces), host, pool, execPath, runtime: real.cwd, log }
  const isolation = await createIsolation(own)
  try {
    return assemble(options, real, isolation, await isolation.ready())
  } catch (error) {
    await isolation.close()
    throw error
  }
}

interface Files {
  hostFile: string
  cwd: string
  workspaces: string
}

function assemble(
  options: ProcessesOptions,
  files: Files,
  ...[isolation, first]: [Isolation, InForce | Refusal]
): Processes {
  const { log = () => {}, cores = availableParallelism(), environment } = options
  let latest = first
  const markerPrefix = randomBytes(9).toString('hex')
  const hosts = new Map<string, HostProcess>()
  const running = new Set<RunningProgram>()
  const endings = new Set<Promise<unknown>>()
  let started = 0
  let isClosed = false

  const workspaces = keepWorkspaces(files.workspaces)
  const reaper = startReaper({
    cwd: files.cwd,
    path: environment.PATH ?? '/usr/bin:/bin',
    markerPrefix,
    cgroups: isolation.cgroups,
    uids: options.isolation?.uids ?? null,
    onRestart: () => log('reaper.restarted'),
    onStart: (pid) => options.records?.reaperIs(pid),
  })
  const isKnown = (marker: string) => hosts.has(marker)
  const sweeper = createSweeper({ markerPrefix, isKnown, onEnd: forgetGroup, log })
  const sizes = watchSizes()
  const spares = keepSpares({
    target: options.spares ?? 1,
    start: () => start('spare', inForce()),
    discard,
    // One in bubblewrap sees nothing but its own bundle: it cannot be started before that is known.
    mayStart: () => computing() < cores && !('refusal' in latest) && latest.plan.level === 'process',
    onDeath: () => log('spare.died'),
  })
  const idle = keepIdle({ most: options.idleProcesses ?? 8, idleMs: options.idleMs ?? 60_000, discard })

  function computing(): number {
    return [...running].filter((program) => !program.isParked()).length
  }

  function inForce(): InForce {
    if ('refusal' in latest) throw new Error(latest.refusal)
    return latest
  }

  async function ready(): Promise<void> {
    latest = await isolation.ready()
    inForce()
  }

  function start(mode: 'spare' | 'now', by: InForce, bundleDir?: string): HostProcess {
    started += 1
    const marker = `${markerPrefix}.${started}`
    const command = { file: options.execPath ?? process.execPath, args: [files.hostFile, mode] }
    let workspace: string | undefined
    const isFixed = by.plan.level === 'bubblewrap'
    const take = (uid: number | undefined) => (workspace = isFixed ? workspaces.take(uid) : undefined)
    const enclosure = isolation.enclose({ inForce: by, name: marker, command, bundleDir, workspace: take })
    const host = startHost({ enclosure, marker, cwd: files.cwd, environment, mostFrameBytes: MOST_FRAME_BYTES })
    host.workspace = workspace
    hosts.set(host.marker, host)
    if (host.pid !== undefined) reaper.add(host.pid)
    return host
  }

  function gone(host: HostProcess, isClean: boolean): void {
    hosts.delete(host.marker)
    probe('process.gone', { pid: host.pid })
    // What lives in it still could lead us astray while we remove it.
    if (host.workspace !== undefined && (isClean || !host.enclosure.isSealed)) void giveBack(host.workspace)
    if (isClean) forgetGroup(host)
    else sweeper.survived(host)
    sweeper.later()
  }

  function forgetGroup({ pid }: HostProcess): void {
    if (pid !== undefined) reaper.del(pid)
  }

  /** A process without a run: nothing of value is in it. */
  function discard(host: HostProcess): void {
    host.kill()
    remember(bury(host))
  }

  async function bury(host: HostProcess): Promise<void> {
    await host.exit
    const isClean = await host.enclosure.end(host.pid)
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
    probe('workspace.removed', { folder })
  }

  /** What nobody waits for but the agent's end. */
  function remember(ending: Promise<unknown>): void {
    endings.add(ending)
    void ending.finally(() => endings.delete(ending))
  }

  async function forget(program: RunningProgram): Promise<void> {
    await program.done
    running.delete(program)
    spares.refillSoon()
  }

  const place: RunPlace = {
    watchSize: ({ workspace, enclosure }, onFull) => {
      const limitMb = enclosure.limits.diskMb
      if (limitMb === null) return () => {}
      return sizes.watch({ workspace, limitBytes: limitMb * MIB, onFull: () => onFull(limitMb) })
    },
    ready,
    replayMs: options.replayMs ?? REPLAY_MS,
    time: options.time,
    take: (wanted) => withWorkspace(existing(wanted) ?? start('now', inForce(), wanted.bundleDir)),
    keep: (served, host) => {
      if (isClosed || host.runs >= (options.runsPerProcess ?? 500) || !isTidied(host)) return false
      idle.put(served.reuseKey, host)
      return true
    },
    parked: () => spares.refillSoon(),
    rejoin: ({ marker, enclosure }) => {
      if (!options.records || enclosure.effective.level !== 'process') return undefined
      return { folder: options.records.rendezvous(marker), waitMs: REJOIN_MS }
    },
    gone,
  }

  /** One that was started as processes are to be started now. */
  function existing({ process: kind, reuseKey, bundleDir }: ProgramStart): HostProcess | undefined {
    const served = kind === 'reuse' ? usable(idle.take(reuseKey)) : undefined
    if (served || inForce().plan.level !== 'process') return served
    const spare = usable(spares.take())
    if (spare) isolation.letIn(bundleDir)
    return spare
  }

  function withWorkspace(host: HostProcess): HostProcess & { workspace: string } {
    const workspace = host.workspace ?? workspaces.take(host.enclosure.uid)
    return Object.assign(host, { workspace })
  }

  /**
   * Whether nothing of the run is left for the next one. What a process that is kept out of our files has in its workspace is
   * removed only when it has ended: it could lead us astray meanwhile.
   */
  function isTidied(host: HostProcess): boolean {
    const { workspace, enclosure } = host
    if (workspace === undefined) return true
    if (enclosure.isSealed && !workspaces.isUntouched(workspace)) return false
    if (enclosure.effective.level === 'bubblewrap') return true
    host.workspace = undefined
    void giveBack(workspace)
    return true
  }

  const isStale = (host: HostProcess) => 'refusal' in latest || host.enclosure.key !== latest.key

  function usable(host: HostProcess | undefined): HostProcess | undefined {
    if (!host || (!host.isTainted() && !isStale(host))) return host
    discard(host)
    return undefined
  }

  spares.refillSoon()

  return {
    adopt(kept, lines) {
      const { marker, workspace, process: mark } = kept
      const enclosure = isolation.adopt(kept)
      const exit = goneFrom(mark)
      const base = { marker, enclosure, mostFrameBytes: MOST_FRAME_BYTES }
      const host = Object.assign(hostOver({ ...base, ...lines, pid: mark.pid, exit, raw: {} }), { workspace })
      hosts.set(marker, host)
      reaper.add(mark.pid)
      return host
    },
    keep: (pid, isKept) => reaper.keep(pid, isKept),
    leaseUntil: (untilMs) => reaper.leaseUntil(untilMs),
    fenceAt: (atMs) => reaper.fenceAt(atMs),
    run: (wanted, onEvents, taken) => {
      if (isClosed) throw new Error('no program can be started: the agent is closing')
      const program = runProgram(place, wanted, onEvents, taken)
      running.add(program)
      void forget(program)
      return program
    },
    stats: () => ({
      running: running.size,
      spares: spares.count(),
      idle: idle.count(),
      survivors: sweeper.survivors(),
      reaperPid: reaper.pid(),
    }),
    isolation: async () => {
      latest = await isolation.ready()
      for (const stale of spares.drop(isStale)) discard(stale)
      return latest
    },
    capabilities: isolation.capabilities,
    close: async () => {
      isClosed = true
      sizes.close()
      for (const program of running) program.kill('shutdown')
      await Promise.all([...running].map((program) => program.done))
      for (const host of [...spares.close(), ...idle.close()]) discard(host)
      await Promise.all(endings)
      sweeper.close()
      await reaper.close()
      await isolation.close()
    },
  }
}
