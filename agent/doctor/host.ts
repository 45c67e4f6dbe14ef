import { constants, existsSync } from 'node:fs'
import { access, open, rm, stat } from 'node:fs/promises'
import path from 'node:path'
import { diskChecks } from '../checks/disk.ts'
import type { AgentConfig } from '../config.ts'
import { knownIdentity, identityFile } from '../identity.ts'
import { seeCgroup } from '../isolation/cgroup-folder.ts'
import { noUsersText, probeIsolation } from '../isolation/probe.ts'
import type { InForce } from '../isolation/probe.ts'
import type { IsolationPlan } from '../isolation/plan.ts'
import { daemonOf } from '../support/daemon.ts'
import { fail, messageOf, ok, skipped, warn } from './finding.ts'
import type { Answer, Question } from './finding.ts'
import { askReady } from './ready.ts'

const NODE = { major: 22, minor: 18 }
const OTHERS = 0o077
const PASSABLE = 0o011
/** Some trials of up to 10 s each. */
const ISOLATION_MS = 45_000

export interface Host {
  config: AgentConfig
  settingsFile: string | undefined
  /** Tries which users work, which takes its time: asked by the question about it alone. */
  plan: () => Promise<IsolationPlan>
}

/** What this machine is like, and whether the agent has what it needs on it. */
export function hostQuestions({ config, settingsFile, plan }: Host): Question[] {
  const { home, diskReserveBytes } = config
  const disk = diskChecks(nearestThere(home), diskReserveBytes).map((check): Question => ({
    check: check.name,
    after: 'state',
    ask: async () => judged(await check.look()),
  }))
  return [
    { check: 'settings', ask: () => ok(settingsText(config, settingsFile)) },
    { check: 'node', ask: askNode },
    { check: 'state', ask: () => askState(home) },
    { check: 'daemon', after: 'state', ask: () => askDaemon(home) },
    { check: 'ready', after: 'state', ask: () => askReady(home) },
    { check: 'identity', after: 'state', ask: () => askIdentity(home, config.token) },
    ...disk,
    { check: 'spool', after: 'state', ask: () => askFolder(path.join(home, 'spool'), 'what runs report') },
    { check: 'bundles', after: 'state', ask: () => askFolder(path.join(home, 'bundles'), 'bundles') },
    { check: 'isolation', after: 'state', deadlineMs: ISOLATION_MS, ask: async () => askIsolation(home, await plan()) },
    { check: 'cgroup', ask: () => askCgroup(home, config.isolation.cgroup) },
  ]
}

/** The folder itself or, before the first start, the one above it that is there: both lie on the same disk. */
function nearestThere(folder: string): string {
  const above = path.dirname(folder)
  return existsSync(folder) || above === folder ? folder : nearestThere(above)
}

function settingsText({ settings }: AgentConfig, file: string | undefined): string {
  const said = settings.filter(({ origin }) => origin !== 'default').length
  return `${said} are set${file === undefined ? '' : `, with ${file}`}; windlass agent config show --origin lists them`
}

function askNode(): Answer {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
  const isNew = major > NODE.major || (major === NODE.major && minor >= NODE.minor)
  const what = `Node ${process.versions.node} on ${process.platform}-${process.arch}`
  if (isNew) return ok(what)
  return fail(`${what} is too old.`, `install Node ${NODE.major}.${NODE.minor} or later`)
}

/** Written and synced for real: a disk that is full or read-only says so only then. */
async function askState(home: string): Promise<Answer> {
  const found = await stat(home).catch((error: NodeJS.ErrnoException) => error.code ?? 'unknown')
  if (found === 'ENOENT') return askParent(home)
  if (typeof found === 'string')
    return fail(`${home} cannot be looked at (${found}).`, 'ask as the user of the agent, or as root')
  const me = process.geteuid?.()
  if (me !== undefined && me !== 0 && found.uid !== me)
    return fail(
      `${home} belongs to another user (${found.uid}).`,
      found.uid === 0 ? 'sudo windlass agent doctor' : `sudo -u '#${found.uid}' windlass agent doctor`,
    )
  const file = path.join(home, `.doctor.${process.pid}`)
  try {
    await tryWriting(file)
    return ok(`${home} can be written`)
  } catch (error) {
    return fail(
      `${home} cannot be written: ${messageOf(error)}.`,
      'make room on its disk, and give it to the user of the agent',
    )
  } finally {
    await rm(file, { force: true }).catch(() => undefined)
  }
}

async function tryWriting(file: string): Promise<void> {
  const handle = await open(file, 'wx', 0o600)
  try {
    await handle.writeFile('can it be written?')
    await handle.sync()
  } finally {
    await handle.close()
  }
}

async function askParent(home: string): Promise<Answer> {
  const parent = path.dirname(home)
  const found = await stat(parent).catch(() => undefined)
  if (!found) return warn(`${home} is not there yet, nor is ${parent}.`, 'the first start makes it, where it may')
  const isWritable = await access(parent, constants.W_OK).then(
    () => true,
    () => false,
  )
  if (isWritable) return ok(`${home} is made at the first start`)
  return fail(`${home} is not there, and ${parent} may not be written.`, 'name another folder by WINDLASS_AGENT_HOME')
}

function askDaemon(home: string): Answer {
  const daemon = daemonOf(home)
  if (daemon.state === 'running') return ok(`it runs as process ${daemon.pid}`)
  if (daemon.state === 'hidden') return skipped('its state belongs to another user')
  return warn('It does not run.', 'systemctl start windlass-agent, or windlass agent start')
}

async function askIdentity(home: string, token: string | undefined): Promise<Answer> {
  try {
    const identity = knownIdentity(home)
    if (!identity) return unregistered(token)
    const { mode } = await stat(identityFile(home))
    if (mode & OTHERS)
      return fail(`${identityFile(home)} holds the key, and others may read it.`, `chmod 600 ${identityFile(home)}`)
    return ok(`${identity.runner} in pool ${identity.pool} of ${identity.org}`)
  } catch (error) {
    return fail(messageOf(error), 'windlass pools token <pool> makes a token for registering anew')
  }
}

function unregistered(token: string | undefined): Answer {
  if (token !== undefined) return ok('not registered yet; the token is used at the first start')
  return warn(
    'It is not registered yet.',
    'windlass pools token <pool> makes a token; windlass agent start --token <token> registers by it',
  )
}

/** What a check of the agent says has the way out behind the last colon. */
function judged(message: string | undefined): Answer {
  if (message === undefined) return ok('there is room')
  const at = message.lastIndexOf(': ')
  return fail(`${message.slice(0, at)}.`, message.slice(at + 2).replace(/\.$/, ''))
}

async function askFolder(folder: string, what: string): Promise<Answer> {
  try {
    await access(folder, constants.R_OK | constants.W_OK | constants.X_OK)
    return ok(`${folder} can be written`)
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException
    if (code === 'ENOENT') return ok(`${folder} is made at the first start`)
    return fail(`${folder}, where ${what} lie, cannot be used (${code}).`, 'give it to the user of the agent')
  }
}

async function askIsolation(home: string, plan: IsolationPlan): Promise<Answer> {
  const state = await stat(home).catch(() => undefined)
  if (!state && plan.uids) return skipped('tried once the state folder is there')
  // The agent opens its folder to the users of runs when it starts; until then the way there counts.
  const isOpen = state && (state.mode & PASSABLE) === PASSABLE
  const daemon = daemonOf(home)
  const pid = daemon.state === 'running' ? { pid: daemon.pid } : {}
  const found = await probeIsolation({ plan, home, ...(!isOpen && { reach: path.dirname(home) }), ...pid })
  if ('refusal' in found) return withFix(found.refusal)
  const { level, user, network } = found.effective
  const what = `${level}, ${user === 'own' ? 'users of their own' : "the agent's user"}${network === 'none' ? ', no network' : ''}${processesText(plan, found)}`
  const [first, ...more] = found.warnings
  if (first === undefined) return ok(what)
  if (plan.level === 'process' && plan.whyNoUsers !== undefined) {
    const { message, fix } = noUsersText(plan.whyNoUsers)
    return fail([`${what}. ${message}`, ...more].join(' '), fix)
  }
  const [message, fix] = parted(first, CGROUP_FIX)
  return warn([`${what}. ${message}`, ...more].join(' '), fix)
}

/** What holds where nobody has set a limit. */
function processesText({ limits }: IsolationPlan, { plan }: InForce): string {
  const { processes } = plan.limits
  return limits.processes !== null || processes === null ? '' : `, at most ${processes} processes and threads in a run`
}

const CGROUP_FIX = 'run the agent as a service of systemd, whose unit hands a cgroup on (Delegate=yes)'

/** What is wrong, and in a sentence of its own what to do. */
function parted(text: string, fallback: string): [message: string, fix: string] {
  const end = text.indexOf('. ')
  return end < 0
    ? [text.replace(/\.?$/, '.'), fallback]
    : [text.slice(0, end + 1), text.slice(end + 2).replace(/\.$/, '')]
}

function withFix(refusal: string): Answer {
  const at = refusal.indexOf(': ')
  const [message, fix] = at < 0 ? [refusal, 'take isolation `process`'] : [refusal.slice(0, at), refusal.slice(at + 2)]
  return fail(`What is wanted cannot be had: ${message}.`, fix)
}

function askCgroup(home: string, wanted: string): Answer {
  if (process.platform !== 'linux') return skipped('there are none on this system')
  const found = seeCgroup(home, wanted)
  if ('reason' in found) {
    const [reason, fix] = parted(found.reason, CGROUP_FIX)
    return warn(`Limits count for single processes and not for whole runs: ${reason}`, fix)
  }
  if (found.controllers.length < 3)
    return warn(
      `Of runs, cgroups limit ${found.controllers.join(' and ') || 'nothing'} here.`,
      'the unit of the agent needs Delegate=yes, the host cgroup v2 with memory, cpu and pids',
    )
  return ok('memory, cores and processes of runs are limited by cgroups')
}
