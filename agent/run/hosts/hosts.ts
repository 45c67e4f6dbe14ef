import { randomBytes } from 'node:crypto'
import { probe } from '@windlass/shared/probe.ts'
import type { Enclosure } from '../../isolation/enclosure.ts'
import type { Isolation } from '../../isolation/isolation.ts'
import type { InForce } from '../../isolation/probe.ts'
import { goneFrom } from '../../os/gone-from.ts'
import type { ProcessMark } from '../../os/process-id.ts'
import type { ProgramRecord } from '../../takeover/records.ts'
import type { Workplace } from '../program/program.ts'
import { hostOver, startHost, type HostLines, type HostProcess } from './host-process.ts'
import type { PipeWatch } from './pipe-watch.ts'
import type { ProcessesOptions } from './processes-types.ts'
import type { ProgramPipes } from './program-pipes.ts'
import { startReaper, type Reaper } from './reaper.ts'
import { createSweeper, type Sweeper } from './sweeper.ts'
import { keepWorkspaces, type Workspaces } from './workspace.ts'

export interface Files {
  hostFile: string
  cwd: string
  workspaces: string
}

type Shared = 'environment' | 'execPath' | 'isolation' | 'records' | 'found' | 'guard'
type HostsOptions = Pick<ProcessesOptions, Shared> & {
  pipes: ProgramPipes
  watch: PipeWatch
  log: NonNullable<ProcessesOptions['log']>
}

/** The host processes of this agent, each from its start until nothing of it is left. */
export class Hosts {
  readonly reaper: Reaper
  readonly #options: HostsOptions
  readonly #files: Files
  readonly #isolation: Isolation
  readonly #workspaces: Workspaces
  readonly #sweeper: Sweeper
  readonly #markerPrefix = randomBytes(9).toString('hex')
  readonly #hosts = new Map<string, HostProcess>()
  /** First processes of pid namespaces, by the marker of what is in there. */
  readonly #inits = new Map<string, ProcessMark>()
  /** What nobody waits for but the agent's end. */
  readonly #endings = new Set<Promise<unknown>>()
  /** Found, and not adopted yet. */
  readonly #awaited: Set<number>
  #started = 0

  constructor(options: HostsOptions, files: Files, isolation: Isolation) {
    const { log, environment, records, found = [], guard } = options
    const { fromMs, fenceMs } = guard?.lease ?? { fromMs: 0, fenceMs: 0 }
    const pgids = found.map(({ process: { pid } }) => pid)
    const markerPrefix = this.#markerPrefix
    this.#options = options
    this.#awaited = new Set(pgids)
    this.#files = files
    this.#isolation = isolation
    this.#workspaces = keepWorkspaces(files.workspaces)
    this.reaper = startReaper({
      cwd: files.cwd,
      path: environment.PATH ?? '/usr/bin:/bin',
      markerPrefix,
      cgroups: isolation.cgroups,
      uids: options.isolation?.uids ?? null,
      found: { pgids, untilMs: fromMs + fenceMs },
      onRestart: () => log('reaper.restarted'),
      onStart: (pid) => {
        records?.reaperIs(pid)
        // Both guard them until here: whenever this agent is killed, one of them does.
        guard?.endReaper()
      },
    })
    const isKnown = (marker: string) => this.#hosts.has(marker)
    this.#sweeper = createSweeper({ markerPrefix, isKnown, onEnd: (host) => this.#forgetGroup(host), log })
  }

  start(mode: 'spare' | 'now', by: InForce, bundleDir?: string): HostProcess {
    this.#started += 1
    const marker = `${this.#markerPrefix}.${this.#started}`
    const { execPath = process.execPath, environment } = this.#options
    let workspace: string | undefined
    const isFixed = by.plan.level === 'bubblewrap'
    const command = { file: execPath, args: [this.#files.hostFile, isFixed ? 'enclosed' : mode] }
    const take = (uid: number | undefined) => (workspace = isFixed ? this.#workspaces.take(uid) : undefined)
    const enclosure = this.#isolation.enclose({ inForce: by, name: marker, command, bundleDir, workspace: take })
    const { cwd } = this.#files
    // The next agent has no way to one in bubblewrap.
    const { watch } = this.#options
    const pipes = this.#options.pipes.take({ mayLast: !isFixed, owner: enclosure.uid })
    const onSpeaks = isFixed ? () => this.#seal(host) : undefined
    const lines = { pipes, rawPipes: pipes?.name, watch, onSpeaks }
    const host = startHost({ enclosure, marker, cwd, environment, ...lines })
    host.workspace = workspace
    this.#hosts.set(host.marker, host)
    if (host.pid !== undefined) this.reaper.add(host.pid)
    return host
  }

  /**
   * Whoever may end it knows by which process, before a program is in it. Answers whether they do: one that could not
   * be ended begins nothing.
   */
  #seal(host: HostProcess): boolean {
    const { pid = 0, marker, enclosure } = host
    try {
      const init = enclosure.seal(pid)
      this.#inits.set(marker, init)
      this.reaper.addInit(init)
      this.#options.watch.addInit(pid, init)
      this.#options.records?.keepInit(marker, init)
      return true
    } catch (error) {
      this.#options.log('process.unsealed', { pid, error: String(error) })
      host.kill()
      return false
    }
  }

  /** A process of the agent before this one, over the lines on which it waits. */
  adopt(record: ProgramRecord, lines: Pick<HostLines, 'frames' | 'messages'>): Workplace {
    const { marker, workspace, rawPipes, runtime, process: mark } = record
    const { pipes, watch } = this.#options
    const raw = this.during(record, pipes.filesOf(rawPipes), () => pipes.find(rawPipes))
    const enclosure = this.#isolation.adopt(record)
    const exit = goneFrom(mark)
    const its = { marker, enclosure, rawPipes, runtime, pid: mark.pid, exit, watch }
    const host = Object.assign(hostOver({ ...its, ...lines, raw }), { workspace })
    this.#hosts.set(marker, host)
    this.#awaited.delete(mark.pid)
    this.reaper.add(mark.pid)
    return host
  }

  /** Opens or closes pipes that a process of the agent before this one may have as well. */
  during<T>({ process: { pid }, uid, cgroup }: ProgramRecord, files: readonly string[], act: () => T): T {
    return this.#options.watch.during({ group: pid, uid, folder: cgroup }, files, act)
  }

  withWorkspace(host: HostProcess): Workplace {
    const workspace = host.workspace ?? this.#workspaces.take(host.enclosure.uid)
    return Object.assign(host, { workspace })
  }

  /**
   * Whether nothing of the run is left for the next one. What a process that is kept out of our files has in its
   * workspace is removed only when it has ended: it could lead us astray meanwhile.
   */
  isTidied(host: HostProcess): boolean {
    const { workspace, enclosure } = host
    if (workspace === undefined) return true
    if (enclosure.isSealed && !this.#workspaces.isUntouched(workspace)) return false
    if (enclosure.effective.level === 'bubblewrap') return true
    host.workspace = undefined
    void this.#giveBack(workspace, enclosure)
    return true
  }

  /** A process without a run: nothing of value is in it. */
  discard(host: HostProcess): void {
    this.#remember(this.end(host))
  }

  /** Answers whether nothing of it is left. */
  async end(host: HostProcess): Promise<boolean> {
    host.kill()
    // Its exit may come only by this: see `putToEnd`.
    const isClean = await host.enclosure.end(host.pid)
    if (isClean) await host.exit
    host.release()
    this.gone(host, isClean)
    return isClean
  }

  async endUnheard(record: ProgramRecord): Promise<boolean> {
    const { pid } = record.process
    const isClean = await this.#isolation.adopt(record).end(pid)
    if (isClean) this.#forget(pid)
    return isClean
  }

  /** It is gone, and `isClean` says whether all of its descendants are. */
  gone(host: HostProcess, isClean: boolean): void {
    const { workspace, enclosure, rawPipes } = host
    this.#hosts.delete(host.marker)
    if (rawPipes !== undefined) this.#options.pipes.remove(rawPipes)
    probe('process.gone', { pid: host.pid })
    // What lives in it still could lead us astray while we remove it.
    if (workspace !== undefined && (isClean || !enclosure.isSealed)) void this.#giveBack(workspace, enclosure)
    if (isClean) this.#forgetGroup(host)
    else this.#sweeper.survived(host)
    this.#sweeper.later()
  }

  #forgetGroup({ pid, marker }: HostProcess): void {
    if (pid !== undefined) this.#forget(pid)
    const init = this.#inits.get(marker)
    if (!init) return
    this.#inits.delete(marker)
    this.reaper.delInit(init)
    this.#options.records?.forgetInit(marker)
  }

  #forget(pid: number): void {
    this.#awaited.delete(pid)
    this.reaper.del(pid)
  }

  /** Nobody waits for a folder to go. */
  async #giveBack(folder: string, { isSealed }: Enclosure): Promise<void> {
    const removal = this.#workspaces
      .giveBack(folder, { isTrusted: !isSealed })
      .catch((error: unknown) => this.#options.log('workspace.stayed', { folder, error: String(error) }))
    this.#remember(removal)
    await removal
    probe('workspace.removed', { folder })
  }

  #remember(ending: Promise<unknown>): void {
    this.#endings.add(ending)
    void ending.finally(() => this.#endings.delete(ending))
  }

  /** Processes that survived SIGKILL. */
  survivors(): number {
    return this.#sweeper.survivors()
  }

  /** Resolves when those that were discarded are gone, with all that was theirs. */
  async close(): Promise<void> {
    await Promise.all(this.#endings)
    await this.#sweeper.close()
    // An agent that cannot start leaves them to the next one, with their pipes.
    if (this.#awaited.size > 0) return this.reaper.leave()
    await this.reaper.close()
    await this.#options.pipes.close()
    await this.#options.watch.close()
  }
}
