import { chownSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { text } from 'node:stream/consumers'
import type { EffectiveIsolation } from '@windlass/shared/model/runner.ts'
import { launch } from '../run/process.ts'
import { bubblewrapArgs, GROUP, PASSWD } from './bubblewrap.ts'
import { seeCgroup } from './cgroup-place.ts'
import type { CgroupPlace, FoundCgroup } from './cgroup-place.ts'
import { fenced, type Command, type Fences } from './command.ts'
import { NO_LIMITS, planKey } from './plan.ts'
import type { IsolationPlan } from './plan.ts'
import { isExecutable, toolPath } from './tools.ts'

/** What this host gives of what is wanted. */
export interface InForce {
  /** Equal for processes that may stand in for one another. */
  key: string
  plan: IsolationPlan
  effective: EffectiveIsolation
  /** What is weaker than a careful person would want, with the way out. */
  warnings: string[]
  cgroup: CgroupPlace | undefined
  setpriv: string | undefined
  bubblewrap: Bubblewrap | undefined
}

/** The host cannot give what is wanted, and nothing less is taken in its place. */
export interface Refusal {
  refusal: string
}

export interface Bubblewrap {
  file: string
  /** Older ones lack some options. */
  can: (option: string) => boolean
}

export interface ProbeOptions {
  plan: IsolationPlan
  /** The state folder. */
  home: string
  /** Node that executes programs, this one by default. */
  execPath?: string
  /** Where groups are made; looked for when it is not given, and then nothing is changed. */
  cgroup?: FoundCgroup
}

/** Tries what is wanted, for real, with a program that does nothing. */
export async function probeIsolation(options: ProbeOptions): Promise<InForce | Refusal> {
  const { plan, home } = options
  const found = options.cgroup ?? seeCgroup(home, plan.cgroup)
  const contradiction = contradictionIn(plan)
  if (contradiction) return { refusal: contradiction }
  const setpriv = plan.uids ? toolPath('setpriv') : undefined
  if (plan.uids && !setpriv)
    return { refusal: 'WINDLASS_AGENT_RUN_UIDS needs `setpriv`: install the package util-linux' }
  const bubblewrap = plan.level === 'bubblewrap' ? await findBubblewrap() : undefined
  if (plan.level === 'bubblewrap' && !bubblewrap) return { refusal: NO_BUBBLEWRAP }
  const refusal = await trial(options, { setpriv, bubblewrap })
  if (refusal) return { refusal }
  const cgroup = 'reason' in found ? undefined : found
  const effective: EffectiveIsolation = {
    level: plan.level,
    user: plan.uids ? 'own' : 'agent',
    cgroup: cgroup?.controllers.length === 3,
    network: plan.network,
  }
  const warnings = warningsOf(plan, found)
  return { key: planKey(plan), plan, effective, warnings, cgroup, setpriv, bubblewrap }
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

async function findBubblewrap(): Promise<Bubblewrap | undefined> {
  const file = toolPath('bwrap')
  if (!file) return undefined
  const { said } = await runOnce({ file, args: ['--help'] })
  return { file, can: (option) => said.includes(`${option} `) }
}

/** Why it does not work; undefined when it does. */
async function trial(
  { plan, home, execPath = process.execPath }: ProbeOptions,
  { setpriv, bubblewrap }: { setpriv: string | undefined; bubblewrap: Bubblewrap | undefined },
): Promise<string | undefined> {
  if (!isExecutable(execPath)) return `there is no ${execPath} that could execute programs`
  const uid = plan.uids?.first
  const fences = { procsFile: undefined, limits: NO_LIMITS, counted: [], uid, setpriv }
  if (uid !== undefined) {
    const reach = { file: '/bin/sh', args: ['-c', REACH, 'windlass', execPath, home] }
    const { exitCode, said } = await runOnce(fenced(reach, { ...fences, bubblewrap: undefined }))
    if (exitCode !== 0) return `user ${uid} cannot be used for runs: ${said}`
  }
  return bubblewrap && inBubblewrap({ plan, execPath, fences, bubblewrap })
}

const REACH = `
[ -x "$1" ] || { echo "it cannot reach $1: put Node where all users may execute it"; exit 1; }
cd "$2" || { echo "it cannot reach $2: put WINDLASS_AGENT_HOME where all users may pass, such as /var/lib/windlass-agent"; exit 1; }
`

interface BubblewrapTrial {
  plan: IsolationPlan
  execPath: string
  fences: Omit<Fences, 'bubblewrap'>
  bubblewrap: Bubblewrap
}

async function inBubblewrap({ plan, execPath, fences, bubblewrap }: BubblewrapTrial): Promise<string | undefined> {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'windlass-probe-'))
  try {
    const files = { passwd: path.join(folder, 'passwd'), group: path.join(folder, 'group') }
    writeFileSync(files.passwd, PASSWD)
    writeFileSync(files.group, GROUP)
    mkdirSync(path.join(folder, 'tmp'))
    if (fences.uid !== undefined)
      for (const name of ['.', 'tmp']) chownSync(path.join(folder, name), fences.uid, fences.uid)
    const view = { readOnly: [execPath], workspace: folder, network: plan.network, ...files }
    const args = bubblewrapArgs(view, bubblewrap.can)
    const trial = fenced({ file: execPath, args: ['--version'] }, { ...fences, bubblewrap: { ...bubblewrap, args } })
    const { exitCode, said } = await runOnce(trial)
    return exitCode === 0 ? undefined : `bubblewrap does not work here: ${said}. ${wayOut(said)}`
  } finally {
    rmSync(folder, { recursive: true, force: true })
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
  if (plan.level === 'process' && !plan.uids) warnings.push(SAME_USER)
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

const SAME_USER =
  'Runs execute as the user of this agent and can read its files, its key among them. Where runs are not to be trusted so far: run the agent as root with WINDLASS_AGENT_RUN_UIDS, or set WINDLASS_AGENT_ISOLATION=bubblewrap.'
