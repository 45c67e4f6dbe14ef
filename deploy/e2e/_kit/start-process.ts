import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { testCli, testRunVariables } from '@windlass/shared/test/_kit/test-run.ts'
import { PROJECT } from '../../tools/source-files.ts'
import { DEADLINE_MS, until } from './until.ts'

/** A process of ours under test, with all that it has said. */
export interface Watched {
  readonly child: ChildProcess
  readonly pid: number
  stdout(): string
  stderr(): string
  /** Waits until stderr holds a text; fails when the process ends before. */
  says(text: string, ms?: number): Promise<void>
  /** The same for stdout. */
  prints(text: string, ms?: number): Promise<void>
  /** Exit code, or the signal that ended it. Fails when it takes longer. */
  ended(ms?: number): Promise<number | string>
}

export interface WatchOptions {
  env?: Record<string, string>
  cwd?: string
  /** Another user, as `setpriv` takes it. */
  user?: { uid: number; gid: number }
  /** A command that executes it, such as `ip netns exec …`; it must become the process, not start one. */
  prefix?: readonly string[]
  /** Arguments of Node before the program. */
  nodeArgs?: readonly string[]
}

const START = join(PROJECT, 'deploy/start/main.ts')
const AGENT = join(PROJECT, 'agent/main.ts')
const TAIL = 3000
/** Starts and stops of whole parts take the longest of all on a busy machine. */
export const ENDED_MS = 2 * DEADLINE_MS
/** What it wrote last may still lie in the pipes. */
const PIPES_MS = 300

/** `npm start -- --json`, without npm. */
export function watchStart(options: WatchOptions): Watched {
  return watch([START, '--json'], options)
}

/** `npm start` as a person has it: sentences on stdout, and the logs of the parts in files. */
export function watchPlainStart(options: WatchOptions): Watched {
  return watch([START], options)
}

export function watchCli(args: readonly string[], options: WatchOptions = {}): Watched {
  const { file, variables } = testCli(args)
  return watch([file, ...args], options, variables)
}

export function watchAgent(options: WatchOptions): Watched {
  return watch(['--disable-warning=ExperimentalWarning', ...(options.nodeArgs ?? []), AGENT], options)
}

function watch(
  args: readonly string[],
  { env, cwd = PROJECT, user, prefix = [] }: WatchOptions,
  variables = testRunVariables(),
): Watched {
  const [file, ...rest] = [...prefix, process.execPath, ...args] as [string, ...string[]]
  const child = spawn(file, rest, {
    cwd,
    env: { ...inherited(variables), ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    ...user,
  })
  let stdout = ''
  let stderr = ''
  let ending: number | string | undefined
  child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text))
  child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text))
  const closed = once(child, 'close')
  // What it started may outlive it and hold its pipes open: its own end is what counts.
  child.once('exit', (code, signal) => (ending = code ?? signal ?? -1))
  child.once('error', (error) => (ending = error.message))
  const more = () =>
    `It ${ending === undefined ? 'runs' : `ended with ${ending}`}. Its last words:\n${stderr.slice(-TAIL)}`
  const hear = async (heard: () => string, text: string, ms = DEADLINE_MS) => {
    const isThere = () => heard().includes(text)
    await until(`"${text}"`, () => isThere() || ending !== undefined, { ms, more })
    if (!isThere()) throw new Error(`"${text}" never came. ${more()}`)
  }
  return {
    child,
    pid: child.pid ?? -1,
    stdout: () => stdout,
    stderr: () => stderr,
    says: (text, ms) => hear(() => stderr, text, ms),
    prints: (text, ms) => hear(() => stdout, text, ms),
    async ended(ms = ENDED_MS) {
      await until(`the end of ${args.join(' ')}`, () => ending !== undefined, { ms, more })
      await Promise.race([closed, wait(PIPES_MS)])
      return ending ?? -1
    },
  }
}

/** What a shell would pass on. No setting of ours but the one by which all of it can be run in bubblewrap. */
export function inherited(variables = testRunVariables()): Record<string, string> {
  const names = ['PATH', 'HOME', 'LANG', 'TMPDIR', 'WINDLASS_AGENT_ISOLATION']
  const given = Object.fromEntries(names.flatMap((name) => (process.env[name] ? [[name, process.env[name]]] : [])))
  return { ...given, ...variables }
}
