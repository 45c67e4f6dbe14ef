import { chownSync, existsSync, mkdirSync, mkdtempSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { text } from 'node:stream/consumers'
import type { EffectiveIsolation } from '@windlass/shared/model/runner.ts'
import { launch } from '../os/process.ts'
import { removeTree } from '../os/remove-tree.ts'
import { bubblewrapArgs, GROUP, PASSWD } from './bubblewrap.ts'
import type { Bubblewrap } from './bubblewrap.ts'
import { seeCgroup } from './cgroup-folder.ts'
import type { CgroupFolder, FoundCgroup } from './cgroup-folder.ts'
import { fenced, type Command, type Fences } from './command.ts'
import { NO_LIMITS, planKey } from './plan.ts'
import type { IsolationPlan } from './plan.ts'
import { withProcessLimit } from './process-limit.ts'
import { writeFilter } from './syscall-filter.ts'
import { isExecutable, toolPath } from './tools.ts'
import type { Tool } from './tools.ts'
import { groupOf } from './uids.ts'

/** What this host gives of what is wanted. */
export interface InForce {
  /** Equal for processes that may stand in for one another. */
  key: string
  plan: IsolationPlan
  effective: EffectiveIsolation
  /** What is weaker than a careful person would want, with the way out. */
  warnings: string[]
  cgroup: CgroupFolder | undefined
  setpriv: Tool | undefined
  bubblewrap: Bubblewrap | undefined
}

/** The host cannot give what is wanted, and nothing less is taken in its place. */
export interface Refusal {
  refusal: string
}

export interface ProbeOptions {
  plan: IsolationPlan
  /** The state folder. */
  home: string
  /** What users of runs have to get to, while the state folder is not open to them yet. */
  reach?: string
  /** Node that executes programs, this one by default. */
  execPath?: string
  /** Where groups are made; looked for when it is not given, and then nothing is changed. */
  cgroup?: FoundCgroup
  /** The agent, where that is another process. */
  pid?: number
}

/**
 * Tries what is wanted, for real, with a program that does nothing. Where users of runs may make no namespaces, root
 * makes them. Users are never left out: root's programs in bubblewrap are root for files and sockets of the host.
 */
export async function probeIsolation(options: ProbeOptions): Promise<InForce | Refusal> {
  const found = await probeOnce(options)
  const { level, uids } = options.plan
  const unshare = toolPath('unshare')
  if (!('refusal' in found) || level !== 'bubblewrap' || !uids || unshare === undefined) return found
  const byRoot = await probeOnce(options, unshare)
  return 'refusal' in byRoot ? found : byRoot
}

async function probeOnce(options: ProbeOptions, unshare?: string): Promise<InForce | Refusal> {
  const { plan: wanted, home } = options
  const found = options.cgroup ?? seeCgroup(home, wanted.cgroup)
  const plan = countable(wanted, found) ? { ...wanted, limits: withProcessLimit(wanted.limits, options.pid) } : wanted
  const contradiction = contradictionIn(plan)
  if (contradiction) return { refusal: contradiction }
  const setpriv = plan.uids ? await findTool('setpriv') : undefined
  if (plan.uids && !setpriv)
    return { refusal: 'WINDLASS_AGENT_RUN_UIDS needs `setpriv`: install the package util-linux' }
  const bwrap = plan.level === 'bubblewrap' ? await findTool('bwrap') : undefined
  if (plan.level === 'bubblewrap' && !bwrap) return { refusal: NO_BUBBLEWRAP }
  const bubblewrap = bwrap && { ...bwrap, unshare }
  const refusal = await trial(options, { setpriv, bubblewrap })
  if (refusal) return { refusal }
  const cgroup = 'reason' in found ? undefined : found
  const effective: EffectiveIsolation = {
    level: plan.level,
    user: plan.uids ? 'own' : 'agent',
    cgroup: cgroup?.controllers.length === 3,
    network: plan.network,
  }
  const warnings = warningsOf(wanted, found)
  return { key: planKey(plan), plan, effective, warnings, cgroup, setpriv, bubblewrap }
}

/** Whether the processes of a run can be told from those of others, by its user or by its cgroup. */
function countable(plan: IsolationPlan, found: FoundCgroup): boolean {
  return plan.uids !== null || ('controllers' in found && found.controllers.includes('pids'))
}

const NO_BUBBLEWRAP =
  'isolation `bubblewrap` is wanted, and there is no `bwrap`: install the package bubblewrap (apt-get install bubblewrap, dnf install bubblewrap, apk add bubblewrap)'

function contradictionIn(plan: IsolationPlan): string | undefined {
  if (process.platform !== 'linux' && (plan.level !== 'process' || plan.uids))
    return `isolation \`bubblewrap\` and WINDLASS_AGENT_RUN_UIDS need Linux, and this is ${process.platform}`
  if (plan.network === 'none' && plan.level !== 'bubblewrap')
    return 'network `none` needs isolation `bubblewrap`: set WINDLASS_AGENT_ISOLATION=bubblewrap'
  if (plan.uids && process.getuid?.() !== 0)
    return 'WINDLASS_AGENT_RUN_UIDS needs an agent that runs as root: run it so, or remove the setting'
  return undefined
}

async function findTool(name: string): Promise<Tool | undefined> {
  const file = toolPath(name)
  if (!file) return undefined
  const { said } = await runOnce({ file, args: ['--help'] })
  return { file, can: (option) => said.includes(`${option} `) }
}

/** Why it does not work; undefined when it does. */
async function trial(
  { plan, home, reach, execPath = process.execPath }: ProbeOptions,
  { setpriv, bubblewrap }: { setpriv: Tool | undefined; bubblewrap: Bubblewrap | undefined },
): Promise<string | undefined> {
  if (!isExecutable(execPath)) return `there is no ${execPath} that could execute programs`
  const uid = plan.uids?.first
  const group = plan.uids ? groupOf(plan.uids) : undefined
  const fences = { procsFile: undefined, limits: NO_LIMITS, counted: [], uid, group, setpriv, filter: undefined }
  if (uid !== undefined) {
    const passes = { file: '/bin/sh', args: ['-c', REACH, 'windlass', execPath, reach ?? home] }
    const { exitCode, said } = await runOnce(fenced(passes, { ...fences, bubblewrap: undefined }))
    if (exitCode !== 0) return `user ${uid} cannot be used for runs: ${said}`
  }
  return bubblewrap && inBubblewrap({ plan, folder: folderFor(home, reach), execPath, fences, bubblewrap })
}

const REACH = `
[ -x "$1" ] || { echo "it cannot reach $1: put Node where all users may execute it"; exit 1; }
cd "$2" 2>/dev/null || {
  echo "it cannot reach $2: put WINDLASS_AGENT_HOME where all users may pass, such as /var/lib/windlass-agent"
  exit 1
}
`

interface BubblewrapTrial {
  plan: IsolationPlan
  /** It is removed in the end. */
  folder: string
  execPath: string
  fences: Omit<Fences, 'bubblewrap'>
  bubblewrap: Bubblewrap
}

/**
 * Where only the agent may write: in a /tmp without a sticky bit a program could put a link in the place of the folder.
 * While no user of a run gets into the state folder, there is no such program.
 */
function folderFor(home: string, reach: string | undefined): string {
  const runtime = path.join(home, 'runtime')
  const parent = reach === undefined && existsSync(runtime) ? runtime : os.tmpdir()
  return mkdtempSync(path.join(parent, 'windlass-probe-'))
}

async function inBubblewrap(trial: BubblewrapTrial): Promise<string | undefined> {
  const { plan, folder, execPath, fences, bubblewrap } = trial
  try {
    const files = { passwd: path.join(folder, 'passwd'), group: path.join(folder, 'group') }
    writeFileSync(files.passwd, PASSWD)
    writeFileSync(files.group, GROUP)
    const filter = writeFilter(folder)
    mkdirSync(path.join(folder, 'tmp'))
    if (fences.uid !== undefined)
      // The folder last: its owner may change what lies in it.
      for (const name of ['tmp', '.']) chownSync(path.join(folder, name), fences.uid, fences.uid)
    const view = { readOnly: [execPath], workspace: folder, network: plan.network, ...files }
    const inner = { ...bubblewrap, args: bubblewrapArgs(view, bubblewrap) }
    const nothing = { file: execPath, args: ['--version'] }
    const command = fenced(nothing, { ...fences, filter, bubblewrap: inner })
    const { exitCode, said } = await runOnce(command)
    return exitCode === 0 ? undefined : `bubblewrap does not work here: ${said}. ${wayOut(said)}`
  } finally {
    await removeTree(folder)
  }
}

function wayOut(said: string): string {
  if (/mount proc/i.test(said))
    return 'This container hides /proc: start it with --security-opt systempaths=unconfined.'
  if (/namespace|uid map|Operation not permitted|Permission denied/i.test(said))
    return 'User namespaces are closed here: allow them (sysctl kernel.unprivileged_userns_clone=1, kernel.apparmor_restrict_unprivileged_userns=0, user.max_user_namespaces above 0; in a container: seccomp and AppArmor that permit them).'
  return 'Try the same with `bwrap` by hand, or take isolation `process`.'
}

const TRIAL_MS = 10_000

async function runOnce(command: Command): Promise<{ exitCode: number | null; said: string }> {
  const env = { PATH: '/usr/bin:/bin' }
  const child = launch({ ...command, cwd: '/', env, morePipes: 0, stdin: 'ignore' })
  const timer = setTimeout(() => child.pid && process.kill(-child.pid, 'SIGKILL'), TRIAL_MS)
  const [out, err, exit] = await Promise.all([text(child.stdout), text(child.stderr), child.exited])
  clearTimeout(timer)
  if ('failed' in exit) return { exitCode: null, said: exit.failed }
  const said = `${out}${err}`.trim()
  return { exitCode: exit.exitCode, said: said === '' ? `it ended with ${exit.exitCode ?? exit.signal}` : said }
}

function warningsOf(plan: IsolationPlan, found: FoundCgroup): string[] {
  const warnings: string[] = []
  if (!plan.uids && plan.level === 'process') warnings.push(sameUser(plan))
  if (!plan.uids && plan.level === 'bubblewrap' && process.getuid?.() === 0) warnings.push(ROOT_INSIDE)
  const controllers = 'reason' in found ? [] : found.controllers
  const { memoryMb, cpus, processes } = plan.limits
  const why = 'reason' in found ? found.reason : 'its cgroups do not hand on what that needs'
  if (memoryMb !== null && !controllers.includes('memory'))
    warnings.push(`Memory is limited for each process and not for a run as a whole: ${why}.`)
  if (cpus !== null && !controllers.includes('cpu')) warnings.push(`The limit of cores is not in force: ${why}.`)
  if (processes !== null && !controllers.includes('pids') && !plan.uids)
    warnings.push(`The limit of processes is not in force: ${why}.`)
  return warnings
}

const ROOT_INSIDE = [
  'Programs in bubblewrap have none of the powers of root, but are root for services of this machine that ask who',
  'connects to a socket. Fix: let runs have users of their own (WINDLASS_AGENT_RUN_UIDS), with a state folder that all',
  'may pass, such as /var/lib/windlass-agent.',
].join(' ')
const SAME_USER = 'Runs execute as the user of this agent and can read its files, its key among them.'
const IN_BUBBLEWRAP = 'set WINDLASS_AGENT_ISOLATION=bubblewrap'

function sameUser({ whyNoUsers }: IsolationPlan): string {
  if (whyNoUsers !== undefined) {
    const { message, fix } = noUsersText(whyNoUsers)
    return `${message} Fix: ${fix}.`
  }
  const asRoot = 'run the agent as root with WINDLASS_AGENT_RUN_UIDS'
  return `${SAME_USER} Where runs are not to be trusted so far: ${asRoot}, or ${IN_BUBBLEWRAP}.`
}

/** What it means that `auto` found no users for runs, and the way out. */
export function noUsersText(whyNoUsers: string): { message: string; fix: string } {
  const why = `Users of their own, which they would have by default, do not work here: ${whyNoUsers}.`
  const fix = `mend that, ${IN_BUBBLEWRAP}, or say with WINDLASS_AGENT_RUN_UIDS=off that runs are trusted`
  return { message: `${SAME_USER} ${why}`, fix }
}
