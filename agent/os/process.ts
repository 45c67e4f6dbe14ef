import { closeSync } from 'node:fs'
import type { Duplex, Readable } from 'node:stream'
import { execa, type Options } from 'execa'

export interface LaunchSpec {
  file: string
  args: string[]
  cwd: string
  /** All of it: nothing is inherited. */
  env: Record<string, string>
  /** Pipes beyond stdin, stdout and stderr, from descriptor 3 on. */
  morePipes: number
  stdin: 'ignore' | 'pipe'
  /** What its stdout and stderr are, where these are no pipes that end with us. */
  output?: { stdout: OwnPipe; stderr: OwnPipe } | undefined
}

export interface OwnPipe {
  /** The descriptor that the process gets. Here it is closed then. */
  given: number
  /** The other end. */
  read: Readable
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

/** The only place that starts processes: each leads a group of its own, so that all of it can be ended together. */
export function launch(spec: LaunchSpec): Launched {
  const { output } = spec
  const child = execa(spec.file, spec.args, optionsOf(spec))
  // It has copies of its own: while we had ours, the other ends would see no end.
  if (output) for (const { given } of [output.stdout, output.stderr]) closeSync(given)
  const { pid, nodeChildProcess } = child
  const exited = new Promise<Exit>((resolve) => {
    nodeChildProcess.once('exit', (exitCode, signal) => resolve({ exitCode, signal }))
    // It never rejects (`reject: false`), and comes after `exit` if there was one; without one it says what failed.
    void child.then((result) => resolve({ failed: shortMessageOf(result) }))
  })
  const [, stdout, stderr, ...more] = child.stdio as [unknown, Readable, Readable, ...Duplex[]]
  const read = output ? { stdout: output.stdout.read, stderr: output.stderr.read } : { stdout, stderr }
  return { pid, stdin: child.stdin, ...read, more, exited }
}

function optionsOf(spec: LaunchSpec) {
  const { stdout, stderr } = spec.output ?? {}
  return {
    cwd: spec.cwd,
    env: spec.env,
    extendEnv: false,
    stdio: [spec.stdin, handing(stdout), handing(stderr), ...Array<'pipe'>(spec.morePipes).fill('pipe')],
    // Read as it comes by whoever asked for it; nothing is kept and nothing is decoded.
    buffer: false,
    encoding: 'buffer',
    reject: false,
    // A group of its own. We end it ourselves, and the reaper does when we cannot: execa's exit hooks would be a third.
    detached: true,
    cleanup: false,
  } as const satisfies Options
}

/** Any descriptor is handed on, but the types know no numbers above 9. */
function handing(own: OwnPipe | undefined): 'pipe' {
  return (own?.given ?? 'pipe') as 'pipe'
}

function shortMessageOf(result: object): string {
  const { originalMessage, shortMessage } = result as { originalMessage?: string; shortMessage?: string }
  return originalMessage ?? shortMessage ?? 'the process could not be started'
}
