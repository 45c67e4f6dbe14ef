import { randomInt } from 'node:crypto'
import { chmodSync, existsSync, mkdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { atMost } from '@windlass/shared/time.ts'
import type { RunLimits } from '@windlass/shared/model/pool.ts'
import type { Capability } from '@windlass/shared/wire/agent.ts'
import { uidsOf } from '../os/process-table.ts'
import type { Command } from './command.ts'
import { fenced } from './command.ts'
import { bubblewrapArgs, GROUP, PASSWD } from './bubblewrap.ts'
import type { ProgramRecord } from '../takeover/records.ts'
import { cgroupAt, endCgroup, limitAgain, makeCgroup } from './cgroup.ts'
import { runUsers } from './fuse.ts'
import type { RunUsers } from './fuse.ts'
import type { Cgroup } from './cgroup.ts'
import { openCgroup } from './cgroup-folder.ts'
import type { CgroupFolder } from './cgroup-folder.ts'
import { makeEnclosure } from './enclosure.ts'
import type { Enclosure } from './enclosure.ts'
import { FormerUsers } from './former-users.ts'
import { openStateFolder, openToGroup, openToRead } from './open-folders.ts'
import { NO_LIMITS, planIsolation, planKey } from './plan.ts'
import type { HostIsolation, UidRange } from './plan.ts'
import { probeIsolation } from './probe.ts'
import type { InForce, Refusal } from './probe.ts'
import { writeFilter } from './syscall-filter.ts'
import { groupOf, keepUids, pidsOfUids } from './uids.ts'
import type { Uids } from './uids.ts'

/** How the runs of this agent are kept apart. */
export interface Isolation {
  /** What is in force at present, as host and pool want it, or why nothing may be started. */
  ready(): Promise<InForce | Refusal>
  /** Resolves when a process may have a user, where that is a matter of time. */
  userFree(): Promise<void>
  /** Room for one process. Its workspace has to be known where it is all that it sees. */
  enclose(wanted: Enclosed): Enclosure
  /** The room of a process that the agent before this one had started. */
  adopt(room: Room): Enclosure
  /** What this host could give, wanted or not. */
  capabilities(): Promise<Capability[]>
  /** Folder of the groups that it makes. */
  cgroups: string | undefined
  /** Lets users of runs read a bundle. */
  letIn(bundleDir: string): void
  close(): Promise<void>
}

export interface Enclosed {
  inForce: InForce
  /** Of its cgroup. */
  name: string
  command: Command
  bundleDir: string | undefined
  /** Answers the workspace of a user. */
  workspace: (uid: number | undefined) => string | undefined
}

type Room = Pick<ProgramRecord, 'uid' | 'cgroup' | 'key' | 'effective' | 'limits'>

interface IsolationOptions {
  home: string
  host: HostIsolation
  /** What the pool says at the moment. */
  pool: () => Parameters<typeof planIsolation>[1]
  execPath: string
  /** The runtime's own. */
  runtime: string
  /** Users of programs of the agent before this one, which are to be adopted. */
  adopted?: readonly number[] | undefined
  log: (name: string, facts?: Record<string, unknown>) => void
}

const NO_USER_FREE =
  'all user ids of WINDLASS_AGENT_RUN_UIDS are in use, by processes or what they have left: give the agent more of them'

/** A host may be mended at any time. */
const REFUSAL_MS = 10_000

export async function createIsolation(options: IsolationOptions): Promise<Isolation> {
  const { home, host, log } = options
  const uids = host.uids ? keepUids(host.uids, someStart(host.uids)) : undefined
  const onStay = (users: number[]) =>
    log('isolation.traces', { users: users.slice(0, MOST_LOGGED), count: users.length })
  const former = uids && new FormerUsers(uids, onStay)
  if (host.uids && uids && former) await forgetFormer(host.uids, uids, { former, adopted: options.adopted ?? [] })
  if (host.uids) openToUsers(home, options.runtime, groupOf(host.uids))
  else chmodSync(home, 0o700)
  const ours = path.join(home, 'runtime')
  const prepared = { uids, former, files: writeNames(ours), filter: writeFilter(ours) }
  return new HostsIsolation(options, { ...prepared, cgroup: openCgroup(home, host.cgroup) })
}

interface Prepared {
  uids: Uids | undefined
  former: FormerUsers | undefined
  files: ReturnType<typeof writeNames>
  filter: string | undefined
  cgroup: ReturnType<typeof openCgroup>
}

class HostsIsolation implements Isolation {
  readonly cgroups: string | undefined
  readonly #options: IsolationOptions
  readonly #prepared: Prepared
  readonly #runs: RunUsers | null
  #known: { key: string; until: number; found: Promise<InForce | Refusal> } | undefined

  constructor(options: IsolationOptions, prepared: Prepared) {
    this.#options = options
    this.#prepared = prepared
    this.#runs = runUsers(options.host.uids, options.log)
    this.cgroups = 'folder' in prepared.cgroup ? prepared.cgroup.folder : undefined
  }

  ready(): Promise<InForce | Refusal> {
    const plan = planIsolation(this.#options.host, this.#options.pool())
    const key = planKey(plan)
    if (this.#known?.key !== key || performance.now() > this.#known.until) {
      const found = Promise.withResolvers<InForce | Refusal>()
      this.#known = { key, until: Infinity, found: found.promise }
      this.#probe(plan).then(found.resolve, (error: unknown) => found.resolve({ refusal: String(error) }))
    }
    return this.#known.found
  }

  async #probe(plan: HostIsolation): Promise<InForce | Refusal> {
    const { home, execPath, log } = this.#options
    const found = await probeIsolation({ plan, home, execPath, cgroup: this.#prepared.cgroup })
    if ('refusal' in found) {
      if (this.#known) this.#known.until = performance.now() + REFUSAL_MS
      log('isolation.refused', { reason: found.refusal })
    } else for (const warning of found.warnings) log('isolation.weak', { warning })
    return found
  }

  async userFree(): Promise<void> {
    await this.#prepared.former?.userFree()
  }

  enclose(wanted: Enclosed): Enclosure {
    if (wanted.bundleDir !== undefined) this.letIn(wanted.bundleDir)
    const uid = wanted.inForce.plan.uids ? this.#takeUid() : undefined
    let group: Cgroup | undefined
    try {
      group = wanted.inForce.cgroup && this.#groupIn(wanted.inForce.cgroup, wanted.name, wanted.inForce.plan.limits)
      return this.#encloseIn(wanted, { uid, group })
    } catch (error) {
      // Nothing was started: without this each failure would cost a user, until there is none.
      void group?.end()
      if (uid !== undefined) this.#prepared.uids?.give(uid)
      throw error
    }
  }

  letIn(bundleDir: string): void {
    const { home, host } = this.#options
    if (!host.uids) return
    // The names of bundles can be read in /proc of processes that have one mounted, by everybody on the machine.
    if (bundleDir.startsWith(`${home}/`)) openToGroup(path.dirname(bundleDir), groupOf(host.uids))
    openToRead(bundleDir)
  }

  #takeUid(): number | undefined {
    const { uids } = this.#prepared
    if (!uids) return undefined
    const uid = uids.take()
    if (uid === undefined) throw new Error(NO_USER_FREE)
    return uid
  }

  /** The reaper of an earlier agent may have tidied up only now, or a person has. */
  #groupIn(parent: CgroupFolder, name: string, limits: RunLimits): Cgroup {
    const { home, host } = this.#options
    if (!existsSync(parent.folder)) openCgroup(home, host.cgroup)
    return makeCgroup(path.join(parent.folder, name), { ...parent, limits, runs: this.#runs })
  }

  #encloseIn(wanted: Enclosed, { uid, group }: { uid: number | undefined; group: Cgroup | undefined }): Enclosure {
    const { inForce, command, bundleDir, workspace } = wanted
    const { execPath, runtime, host } = this.#options
    const { plan, setpriv, bubblewrap } = inForce
    const own = workspace(uid)
    const readOnly = [execPath, runtime, ...(bundleDir === undefined ? [] : [bundleDir])]
    const { files, filter } = this.#prepared
    const view = own === undefined ? undefined : { readOnly, workspace: own, network: plan.network, ...files }
    const inner = bubblewrap && view && { ...bubblewrap, args: bubblewrapArgs(view, bubblewrap) }
    const counted = group ? (inForce.cgroup?.controllers ?? []) : []
    const ofRuns = host.uids ? groupOf(host.uids) : undefined
    const user = { uid, group: ofRuns, setpriv }
    const fences = { procsFile: group?.procsFile, limits: plan.limits, counted, ...user, filter, bubblewrap: inner }
    const onEnd = (isClean: boolean) => this.#left(uid, inForce, isClean)
    return makeEnclosure({ inForce, uid, cgroup: group, command: fenced(command, fences), runs: this.#runs, onEnd })
  }

  adopt({ uid, cgroup: folder, key, effective, limits }: Room): Enclosure {
    if (uid !== undefined) this.#prepared.uids?.reserve(uid)
    const group = folder === undefined ? undefined : this.#groupAgain(folder, limits)
    const inForce = { key, effective, plan: { limits } }
    const onEnd = (isClean: boolean) => this.#left(uid, inForce, isClean)
    return makeEnclosure({ inForce, uid, cgroup: group, command: NO_COMMAND, runs: this.#runs, onEnd })
  }

  /** A program that cannot be limited again is no reason to lose its run. */
  #groupAgain(folder: string, limits: RunLimits): Cgroup {
    const { cgroup } = this.#prepared
    try {
      if ('controllers' in cgroup) limitAgain(folder, { controllers: cgroup.controllers, limits })
    } catch (error) {
      this.#options.log('isolation.weak', {
        warning: `a program that was taken back is without limits: ${String(error)}`,
      })
    }
    return cgroupAt(folder, this.#runs)
  }

  /** A user of whom something lives is nobody else's. In bubblewrap it could leave nothing outside of its workspace. */
  #left(uid: number | undefined, { effective }: Pick<InForce, 'effective'>, isClean: boolean): void {
    if (!isClean || uid === undefined) return
    if (effective.level === 'bubblewrap') this.#prepared.uids?.give(uid)
    else this.#prepared.former?.forget(uid)
  }

  async capabilities(): Promise<Capability[]> {
    const { home, host, execPath } = this.#options
    const { cgroup, uids } = this.#prepared
    const plan: HostIsolation = { ...host, level: 'bubblewrap', limits: NO_LIMITS }
    const inside = await probeIsolation({ plan, home, execPath, cgroup })
    return [
      ...('refusal' in inside ? [] : (['bubblewrap'] as const)),
      ...('controllers' in cgroup && cgroup.controllers.length === 3 ? (['cgroup'] as const) : []),
      ...(uids ? (['own-user'] as const) : []),
    ]
  }

  async close(): Promise<void> {
    const { cgroup, former } = this.#prepared
    await former?.close()
    if ('folder' in cgroup) await endCgroup(cgroup.folder, this.#runs)
  }
}

/** Agents in containers of one host may have the same users, whose processes the kernel counts together. */
const someStart = ({ first, last }: UidRange) => randomInt(last - first + 1)

function openToUsers(home: string, runtime: string, group: number): void {
  openStateFolder(home, ['runtime', 'workspaces', 'lives'])
  // Programs that are taken back have their bundle in there.
  const bundles = path.join(home, 'bundles')
  if (existsSync(bundles)) openToGroup(bundles, group)
  if (runtime.startsWith(`${home}/`)) openToRead(runtime)
}

/**
 * An agent that was killed has not tidied up after its users, of whom nothing lives any more: see `endLeftovers`. They
 * are in use until all that they left is gone, for which runs wait. Nobody else may have those of programs that are
 * taken back: what such a program has started may be seen by no look.
 */
async function forgetFormer(
  { first, last }: UidRange,
  uids: Uids,
  { former, adopted }: { former: FormerUsers; adopted: readonly number[] },
): Promise<void> {
  const living = new Set([...pidsOfUids({ first, last }).flatMap(uidsOf), ...adopted])
  const all = Array.from({ length: last - first + 1 }, (_, i) => first + i)
  for (const uid of all) uids.reserve(uid)
  former.forget(...all.filter((uid) => !living.has(uid)))
  await atMost(FORMER_MS, former.looked())
}

/** Long enough for most, so that processes that start ahead find a user; half a million files take 13 s. */
const FORMER_MS = 5_000
const MOST_LOGGED = 10

/** It runs already. */
const NO_COMMAND: Command = { file: '', args: [] }

/** What programs in bubblewrap find as /etc/passwd and /etc/group. */
function writeNames(folder: string): { passwd: string; group: string } {
  mkdirSync(folder, { recursive: true })
  const files = { passwd: path.join(folder, 'passwd'), group: path.join(folder, 'group') }
  writeFileSync(files.passwd, PASSWD)
  writeFileSync(files.group, GROUP)
  for (const file of Object.values(files)) chmodSync(file, 0o644)
  return files
}
