import { execFileSync, spawn } from 'node:child_process'
import { mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { until } from './until.ts'
import { type Lan, makeLan, noHosts } from './netns.ts'
import { inherited } from './start-process.ts'

/** A Debian as it comes from its installer, on a network of its own on which there is nobody but us. */
export interface CleanMachine {
  root: string
  /** Ours, as the machine reaches it. */
  address: string
  /** What a person types there, as root unless another user is named; answers when it has ended. */
  types(command: string, options?: TypeOptions): Promise<Typed>
  /** The same for what goes on until it is stopped. */
  starts(command: string): { ended: Promise<Typed>; soFar(): string }
  /** Each file with its type, mode, owner, size and aim; of a folder no size. Not what the kernel shows. */
  files(): string[]
  /** Command lines of what runs there. */
  processes(): string[]
  remove(): void
}

interface TypeOptions {
  uid?: number
  ms?: number
}

export interface Typed {
  code: number
  stdout: string
  stderr: string
}

const SUITE = 'bookworm'
/** Half a minute on a machine that does nothing else; one was seen that took more than four. */
const DEBOOTSTRAP_MS = 900_000
const COMMAND_MS = 120_000
const PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'
const FIRST = 'sleep infinity'

/** Why there can be no such machine here; nothing where there can. */
export function noMachine(): string | false {
  const why = noHosts()
  if (why !== undefined) return why
  try {
    execFileSync('sh', ['-c', 'command -v debootstrap && command -v nsenter && command -v unshare'], {
      stdio: 'ignore',
    })
    return false
  } catch {
    return 'debootstrap, nsenter and unshare make the machine; install the packages debootstrap and util-linux'
  }
}

/** `folder` is where it lies. */
export async function makeMachine(folder: string): Promise<CleanMachine> {
  const root = join(folder, 'root')
  mkdirSync(root)
  // In memory: what takes long is that each of thousands of files is written to the disk for certain.
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=2g,mode=755', 'tmpfs', root])
  try {
    return await fill(folder, root)
  } catch (error) {
    unmount(root)
    throw error
  }
}

function unmount(root: string): void {
  execFileSync('umount', ['--lazy', root])
}

async function fill(folder: string, root: string): Promise<CleanMachine> {
  // curl is what the documented command begins with; all else is what Debian considers the least.
  const made = spawn('debootstrap', ['--variant=minbase', '--include=curl', SUITE, root], {
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: DEBOOTSTRAP_MS,
  })
  const said = text(made.stdout)
  const code = await new Promise((resolve) => made.once('exit', resolve))
  if (code !== 0) throw new Error(`debootstrap failed: ${(await said).slice(-1000)}`)
  const lan = makeLan(folder)
  try {
    return await boot(root, lan)
  } catch (error) {
    lan.remove()
    throw error
  }
}

// Devices are the host's: those of a machine that was booted.
const INIT = `mount --rbind /dev "$1/dev"; mount -t proc proc "$1/proc"; exec chroot "$1" ${FIRST}`

async function boot(root: string, lan: Lan): Promise<CleanMachine> {
  const host = lan.addHost('clean')
  const [file, ...args] = [...host.prefix(), 'unshare', '--mount', '--pid', '--fork', 'sh', '-c', INIT, 'sh', root]
  spawn(file, args, { stdio: 'ignore', env: inherited() })
  const isFirst = (pid: number) => commandOf(pid) === FIRST
  const first = await until('the first process of the machine', () => host.pids().find(isFirst), { ms: 10_000 })
  const there = ['--target', String(first), '--mount', '--pid', '--net', `--root=/proc/${first}/root`, '--wd=/']
  return {
    root,
    address: lan.address,
    types: (command, options) => type(there, command, options).ended,
    starts: (command) => type(there, command),
    files: () => filesBelow(root),
    processes: () =>
      host
        .pids()
        .map(commandOf)
        .filter((command) => command !== FIRST && !/\bunshare --mount/.test(command)),
    remove() {
      lan.remove()
      unmount(root)
    },
  }
}

function type(there: string[], command: string, { uid = 0, ms = COMMAND_MS }: TypeOptions = {}) {
  const home = uid === 0 ? '/root' : `/home/${uid}`
  const user = uid === 0 ? [] : ['setpriv', `--reuid=${uid}`, `--regid=${uid}`, '--clear-groups']
  const env = ['env', '-i', `HOME=${home}`, `PATH=${PATH}`]
  const child = spawn('nsenter', [...there, ...user, ...env, 'sh', '-c', `cd; ${command}`], {
    env: inherited(),
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: ms,
    killSignal: 'SIGKILL',
  })
  let [stdout, stderr] = ['', '']
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => (stdout += chunk))
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => (stderr += chunk))
  const ended = new Promise<Typed>((resolve, reject) => {
    child.once('error', reject)
    child.once('exit', (_code, signal) => {
      if (signal) reject(new Error(`\`${command}\` was ended by ${signal}:\n${stdout}${stderr}`))
    })
    child.once('close', (code) => resolve({ code: code ?? -1, stdout, stderr }))
  })
  return { ended, soFar: () => stdout + stderr }
}

function commandOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').trim()
  } catch {
    // It has ended meanwhile.
    return ''
  }
}

function filesBelow(root: string): string[] {
  const unlisted = ['-path', './proc', '-prune', '-o', '-path', './dev', '-prune', '-o']
  const listed = ['(', '-type', 'd', '-printf', '%P d %m %U\\n', ')', '-o', '-printf', '%P %y %m %U %s %l\\n']
  const found = execFileSync('find', ['.', '-xdev', ...unlisted, ...listed], { cwd: root, encoding: 'utf8' })
  return found.split('\n').filter(Boolean).toSorted()
}
