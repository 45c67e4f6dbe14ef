import fs from 'node:fs/promises'
import { availableParallelism } from 'node:os'
import path from 'node:path'
import { runUsers } from '../../isolation/fuse.ts'
import { createIsolation, type Isolation } from '../../isolation/isolation.ts'
import { PLAIN } from '../../isolation/plan.ts'
import type { InForce, Refusal } from '../../isolation/probe.ts'
import { watchSizes } from '../../isolation/workspace-size.ts'
import { startTurn } from '../../os/process.ts'
import { bootId } from '../../os/process-id.ts'
import type { ProgramRecord } from '../../takeover/records.ts'
import type { HostLines, HostProcess } from './host-process.ts'
import { Hosts, type Files } from './hosts.ts'
import { keepIdle, type IdleProcesses } from './reuse.ts'
import type { Processes, ProcessesOptions, ProcessesStats } from './processes-types.ts'
import type { ProgramStart, RunningProgram, RunContext, TakenBack, Workplace } from '../program/program.ts'
import type { OnEvents } from '../program/output.ts'
import { runProgram } from '../program/run-program.ts'
import { watchPipes, type PipeWatch } from './pipe-watch.ts'
import { openProgramPipes, type ProgramPipes } from './program-pipes.ts'
import { prepareRuntime, removeOtherRuntimes } from './runtime-files.ts'
import { keepSpares, type Spares } from './spares.ts'
import { FormerWorkspaces } from './former-workspaces.ts'

export type { Processes, ProcessesOptions, ProcessesStats }

const MIB = 1024 * 1024
const REPLAY_MS = 60_000
const JOURNAL_MS = 60_000
/** Longer than a lease is by default; the reaper ends what is left when that is over. */
const REJOIN_MS = 120_000

/**
 * Everything that executes programs on this host. Programs of former lives of the agent are gone: their workspaces go
 * too.
 */
export async function createProcesses(options: ProcessesOptions): Promise<Processes> {
  const { log = () => {}, isolation } = options
  // Programs that are taken back may keep waiting even who empties the workspaces of others.
  const watch = watchPipes({ log, runs: runUsers(isolation?.uids ?? null, log) })
  const onStay = (folder: string, error: unknown) => log('workspace.stayed', { folder, error: String(error) })
  const former = options.workspaces ?? new FormerWorkspaces(path.resolve(options.home, 'workspaces'), onStay)
  try {
    return await underWatch(options, { watch, former })
  } catch (error) {
    await watch.close()
    await former.close()
    throw error
  }
}

type FromStart = Pick<Found, 'watch' | 'former'>

async function underWatch(options: ProcessesOptions, fromStart: FromStart): Promise<Processes> {
  const home = path.resolve(options.home)
  const workspaces = path.join(home, 'workspaces')
  const { log = () => {}, isolation: host = PLAIN, pool = () => undefined, execPath = process.execPath } = options
  const [files, pipes] = await Promise.all([
    prepareRuntime(path.join(home, 'runtime')),
    pipesIn(home, { ...options, log }),
    fromStart.former.setAside(options.found?.map(({ workspace }) => path.basename(workspace))),
  ])
  await removeOtherRuntimes(files, { ...options, log })
  const real = { ...files, cwd: path.dirname(files.hostFile), workspaces: await fs.realpath(workspaces) }
  const adopted = options.found?.flatMap(({ uid }) => uid ?? [])
  const own = { home: path.dirname(real.workspaces), host, pool, execPath, runtime: real.cwd, log, adopted }
  const isolation = await createIsolation(own)
  try {
    return new ProcessesHere(options, real, { ...fromStart, isolation, pipes, latest: await isolation.ready() })
  } catch (error) {
    await isolation.close()
    throw error
  }
}

function pipesIn(
  home: string,
  { records, found = [], log }: ProcessesOptions & Required<Pick<ProcessesOptions, 'log'>>,
): Promise<ProgramPipes> {
  const except = found.map(({ rawPipes }) => rawPipes)
  const onFailure = (error: unknown) => log('takeover.no-pipes', { error })
  const mayLast = records !== undefined && bootId() !== ''
  return openProgramPipes({ folder: path.join(home, 'pipes'), mayLast, except, onFailure })
}

interface Found {
  isolation: Isolation
  latest: InForce | Refusal
  pipes: ProgramPipes
  watch: PipeWatch
  former: FormerWorkspaces
}

/** Programs of this agent, the processes that they are given, and those that wait for one. */
class ProcessesHere implements Processes {
  readonly #options: ProcessesOptions
  readonly #isolation: Isolation
  /** What is in force for the next process, as it was when somebody looked last. */
  #latest: InForce | Refusal
  readonly #hosts: Hosts
  readonly #former: FormerWorkspaces
  readonly #spares: Spares
  readonly #idle: IdleProcesses
  readonly #sizes = watchSizes()
  readonly #running = new Set<RunningProgram>()
  readonly #context: RunContext
  #isClosed = false

  constructor(options: ProcessesOptions, files: Files, found: Found) {
    const { log = () => {}, cores = availableParallelism() } = options
    this.#options = options
    this.#isolation = found.isolation
    this.#latest = found.latest
    this.#former = found.former
    const { pipes, watch } = found
    const hosts = new Hosts({ ...options, log, pipes, watch }, files, found.isolation)
    const discard = (host: HostProcess) => hosts.discard(host)
    this.#hosts = hosts
    this.#spares = keepSpares({
      target: options.spares ?? 1,
      start: () => hosts.start('spare', this.#inForce()),
      discard,
      mayStart: () => this.#computing() < cores && this.#maySpare(),
      onDeath: () => log('spare.died'),
      onFailure: (error) => log('spare.failed', { error }),
    })
    this.#idle = keepIdle({ most: options.idleProcesses ?? 8, idleMs: options.idleMs ?? 60_000, discard })
    this.#context = this.#makeContext()
    this.#spares.refillSoon()
  }

  run(wanted: ProgramStart, onEvents: OnEvents, taken?: TakenBack): RunningProgram {
    if (this.#isClosed) throw new Error('no program can be started: the agent is closing')
    const program = runProgram(this.#context, wanted, onEvents, taken)
    this.#running.add(program)
    void this.#forget(program)
    return program
  }

  async #forget(program: RunningProgram): Promise<void> {
    await program.done
    this.#running.delete(program)
    this.#spares.refillSoon()
  }

  /** What a program may ask for, from its process to the end of that. */
  #makeContext(): RunContext {
    const { replayMs = REPLAY_MS, journalMs = JOURNAL_MS, time, log } = this.#options
    return {
      replayMs,
      journalMs,
      time,
      ready: () => this.#ready(),
      take: (wanted) => this.#take(wanted),
      rejoin: (host) => this.#rejoin(host),
      watchSize: (host, onFull) => this.#watchSize(host, onFull),
      parked: () => this.#spares.refillSoon(),
      keep: (served, host) => this.#keep(served, host),
      strayed: (runId, strays) => log?.('process.intruded', { runId, by: strays }),
      gone: (host, isClean) => this.#hosts.gone(host, isClean),
    }
  }

  async #ready(): Promise<void> {
    this.#latest = await this.#isolation.ready()
    this.#inForce()
    await startTurn()
    await this.#isolation.userFree()
  }

  #inForce(): InForce {
    if ('refusal' in this.#latest) throw new Error(this.#latest.refusal)
    return this.#latest
  }

  #take(wanted: ProgramStart): Workplace {
    wanted.begins?.()
    const host = this.#existing(wanted) ?? this.#hosts.start('now', this.#inForce(), wanted.bundleDir)
    return this.#hosts.withWorkspace(host)
  }

  /** One that was started as processes are to be started now. */
  #existing({ process: kind, reuseKey, bundleDir }: ProgramStart): HostProcess | undefined {
    const served = kind === 'reuse' ? this.#usable(this.#idle.take(reuseKey)) : undefined
    if (served || this.#inForce().plan.level !== 'process') return served
    const spare = this.#usable(this.#spares.take())
    if (spare) this.#isolation.letIn(bundleDir)
    return spare
  }

  #usable(host: HostProcess | undefined): HostProcess | undefined {
    if (!host || (!host.isTainted() && !this.#isStale(host))) return host
    this.#hosts.discard(host)
    return undefined
  }

  #isStale(host: HostProcess): boolean {
    return 'refusal' in this.#latest || host.enclosure.key !== this.#latest.key
  }

  #rejoin({ marker, rawPipes }: HostProcess): ReturnType<RunContext['rejoin']> {
    const { records } = this.#options
    if (!records || rawPipes === undefined) return undefined
    return { folder: records.rendezvous(marker), waitMs: REJOIN_MS }
  }

  #watchSize({ workspace, enclosure }: Workplace, onFull: (limitMb: number) => void): () => void {
    const limitMb = enclosure.limits.diskMb
    if (limitMb === null) return () => {}
    return this.#sizes.watch({ workspace, limitBytes: limitMb * MIB, onFull: () => onFull(limitMb) })
  }

  /** For the next run of the same program. */
  #keep(served: ProgramStart, host: HostProcess): boolean {
    const hasServed = host.runs >= (this.#options.runsPerProcess ?? 500)
    if (this.#isClosed || hasServed || !this.#hosts.isTidied(host)) return false
    this.#idle.put(served.reuseKey, host)
    return true
  }

  #computing(): number {
    return [...this.#running].filter((program) => !program.isParked()).length
  }

  /** One in bubblewrap sees nothing but its own bundle: it cannot be started before that is known. */
  #maySpare(): boolean {
    return !('refusal' in this.#latest) && this.#latest.plan.level === 'process'
  }

  during<T>(record: ProgramRecord, files: readonly string[], act: () => T): T {
    return this.#hosts.during(record, files, act)
  }

  adopt(record: ProgramRecord, lines: Pick<HostLines, 'frames' | 'messages'>): Workplace {
    return this.#hosts.adopt(record, lines)
  }

  end(host: HostProcess): Promise<boolean> {
    return this.#hosts.end(host)
  }

  endUnheard(record: ProgramRecord): Promise<boolean> {
    return this.#hosts.endUnheard(record)
  }

  keep(pid: number, isSpared: boolean): void {
    this.#hosts.reaper.keep(pid, isSpared)
  }

  leaseUntil(untilMs: number): void {
    this.#hosts.reaper.leaseUntil(untilMs)
  }

  fenceAt(atMs: number | undefined): void {
    this.#hosts.reaper.fenceAt(atMs)
  }

  stats(): ProcessesStats {
    return {
      running: this.#running.size,
      spares: this.#spares.count(),
      idle: this.#idle.count(),
      survivors: this.#hosts.survivors(),
      reaperPid: this.#hosts.reaper.pid(),
    }
  }

  async isolation(): Promise<InForce | Refusal> {
    this.#latest = await this.#isolation.ready()
    for (const stale of this.#spares.drop((host) => this.#isStale(host))) this.#hosts.discard(stale)
    return this.#latest
  }

  capabilities(): ReturnType<Processes['capabilities']> {
    return this.#isolation.capabilities()
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.#sizes.close()
    for (const program of this.#running) program.kill('shutdown')
    await Promise.all([...this.#running].map((program) => program.done))
    for (const host of [...this.#spares.close(), ...this.#idle.close()]) this.#hosts.discard(host)
    await this.#hosts.close()
    await this.#former.close()
    await this.#isolation.close()
  }
}
