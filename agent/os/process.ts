import { closeSync } from 'node:fs'
import type { Duplex, Readable, Writable } from 'node:stream'
import { execa, type Options } from 'execa'
import { createLoopTurns } from './loop-turns.ts'

export interface LaunchSpec {
  file: string
  args: string[]
  cwd: string
  /** All of it: nothing is inherited. */
  env: Record<string, string>
  /** Pipes beyond stdin, stdout and stderr, from descriptor 3 on. */
  morePipes: number
  stdin: 'ignore' | 'pipe'
  /** What its descriptors are from 1 on, where these were made before; `morePipes` is 0 then. */
  pipes?: OwnPipes | undefined
}

/**
 * What Node makes for a process are sockets, and what we make are pipes. Over a socket a program can hand us
 * descriptors, which the kernel closes when we read: for a TCP connection with `SO_LINGER` we wait as long as the
 * program wants. Over a pipe it can hold
 * the lock of that: `pipe-watch.ts` looks out for it.
 */
export interface OwnPipes {
  stdout: OwnPipe
  stderr: OwnPipe
  /** Descriptor 3. */
  frames: OwnPipe
  /** Descriptor 4. */
  messages: OwnInput
}

interface Given {
  /** The descriptor that the process gets. Here it is closed then. */
  given: number
}

export interface OwnPipe extends Given {
  /** The other end. */
  read: Readable
}

export interface OwnInput extends Given {
  write: Writable
}

/** How a process ended; `null` and a message when it never began. */
export type Exit = { exitCode: number | null; signal: string | null } | { failed: string }

export interface Launched {
  /** Also the number of its process group and session. Undefined when it could not be started. */
  pid: number | undefined
  stdin: NodeJS.WritableStream | null
  stdout: Readable
  stderr: Readable
  more: Duplex[]
  /** The process itself is gone and reaped. Descendants may hold its pipes open. */
  exited: Promise<Exit>
}

/** Starts a process that is heard: each leads a group of its own, so that all of it can be ended together. */
export function launch(spec: LaunchSpec): Launched {
  const { pipes } = spec
  const child = execa(spec.file, spec.args, optionsOf(spec))
  // It has copies of its own: while we had ours, the other ends would see no end.
  for (const { given } of inOrder(pipes)) closeSync(given)
  const { pid, nodeChildProcess } = child
  const exited = new Promise<Exit>((resolve) => {
    nodeChildProcess.once('exit', (exitCode, signal) => resolve({ exitCode, signal }))
    // It never rejects (`reject: false`), and comes after `exit` if there was one; without one it says what failed.
    void child.then((result) => resolve({ failed: shortMessageOf(result) }))
  })
  const [, stdout, stderr, ...more] = child.stdio as [unknown, Readable, Readable, ...Duplex[]]
  const read = pipes ? { stdout: pipes.stdout.read, stderr: pipes.stderr.read } : { stdout, stderr }
  return { pid, stdin: child.stdin, ...read, more: pipes ? [] : more, exited }
}

/**
 * Whoever starts processes waits for this before each, as they may be many at once: Node waits until the new one has
 * begun, 5 ms on an idle machine and 100 on a busy one. Fifty offers that came together held up the event loop for 5 s
 * on two cores, with its heartbeats.
 */
export const startTurn = createLoopTurns()

/** Runs one of which nothing is heard but its end, and ends it after that time. */
export async function runSilent(
  file: string,
  args: readonly string[],
  { env, deadlineMs }: { env: Record<string, string>; deadlineMs: number },
): Promise<Exit> {
  const options = { cwd: '/', env, extendEnv: false, stdio: 'ignore', reject: false, ...OF_ITS_OWN } as const
  const result = await execa(file, args, { ...options, timeout: deadlineMs, killSignal: 'SIGKILL' })
  const { exitCode, signal } = result
  if (exitCode === undefined && signal === undefined) return { failed: shortMessageOf(result) }
  return { exitCode: exitCode ?? null, signal: signal ?? null }
}

/** A group of its own. We end it ourselves, and the reaper does when we cannot: execa's exit hooks would be a third. */
const OF_ITS_OWN = { detached: true, cleanup: false } as const

const inOrder = (pipes: OwnPipes | undefined): Given[] =>
  pipes ? [pipes.stdout, pipes.stderr, pipes.frames, pipes.messages] : []

function optionsOf(spec: LaunchSpec) {
  const made = Array<'pipe'>(2 + spec.morePipes).fill('pipe')
  // Any descriptor is handed on, but the types know no numbers above 9.
  const all = spec.pipes ? inOrder(spec.pipes).map(({ given }) => given as unknown as 'pipe') : made
  const [stdout = 'pipe', stderr = 'pipe', ...more] = all
  return {
    cwd: spec.cwd,
    env: spec.env,
    extendEnv: false,
    stdio: [spec.stdin, stdout, stderr, ...more],
    // Read as it comes by whoever asked for it; nothing is kept and nothing is decoded.
    buffer: false,
    encoding: 'buffer',
    reject: false,
    ...OF_ITS_OWN,
  } as const satisfies Options
}

function shortMessageOf(result: object): string {
  const { originalMessage, shortMessage } = result as { originalMessage?: string; shortMessage?: string }
  return originalMessage ?? shortMessage ?? 'the process could not be started'
}
