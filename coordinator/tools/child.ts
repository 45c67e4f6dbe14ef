import { type ChildProcess, spawn } from 'node:child_process'
import { tmpdir } from 'node:os'
import { setImmediate } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { probe } from '@windlass/shared/probe.ts'
import { cpuMicrosOf } from './cpu-time.ts'
import type { Said, ToolMessage } from './serve.ts'

export type Outcome<A> =
  | { kind: 'answer'; answer: A; cpuMs: number }
  /**
   * The process was ended for its time: of the processor, or of the clock, which says as much of the machine as of the
   * job. `steps`: number of steps that it had taken.
   */
  | { kind: 'too slow'; by: 'cpu' | 'clock'; steps: number }
  /** The process ended during the job. `memory`: by one of the signals that follow when memory is used up. */
  | { kind: 'died'; of: 'memory' | 'other'; how: string; steps: number }

/** What bounds a child and each of its jobs. */
export interface Bounds {
  /** Processor time of each step of a job, which a busy machine does not stretch. Left out: only the clock counts. */
  cpuMs?: number
  /** Time on the clock for a step. Far above `cpuMs`, or an honest job fails on a busy machine. */
  wallMs: number
  /** V8's heap. */
  heapMb: number
  /**
   * All writable memory of a process (RLIMIT_DATA): heap, buffers, stacks of threads, some 60 MiB of Node itself. It
   * holds for each process that the child starts as well. Only Linux enforces it.
   */
  dataMb?: number
  /** Stack of the main thread. Node's own is 984. */
  stackKb?: number
  /** Another user than the coordinator's, which must be able to read the program. Only root may ask for it. */
  user?: { uid: number; gid: number }
}

/** Names of things, and their sizes. */
export type Held = Map<string, number>

/** One process that does one job at a time. */
export interface Child<P, A> {
  readonly pid: number
  /** What the process keeps from earlier jobs, by name, for those who send a thing once only. Noted by them. */
  readonly held: Held
  /** `cpuMs` bounds the first step in place of the pool's. `pieces` are sent before, one at a time. */
  ask(payload: P, options?: { cpuMs?: number; pieces?: readonly unknown[] }): Promise<Outcome<A>>
  /** Kills the process; resolves when it is gone. */
  end(): Promise<void>
  /** Resolves when the process is gone, whatever ended it. */
  readonly gone: Promise<void>
}

/** V8 aborts at its limit, what is not V8 faults, and the kernel kills when the machine's memory is used up. */
const OUT_OF_MEMORY = new Set<string | null>(['SIGABRT', 'SIGTRAP', 'SIGSEGV', 'SIGBUS', 'SIGILL', 'SIGKILL'])
/** A loaded machine needs seconds for what takes 0.1 s. */
const START_MS = 60_000
/** The clock may count for so many times the processor time where the latter cannot be read. */
const UNREAD_FACTOR = 8

/** Starts a process of `entry`, which calls `serve`; resolves when it takes jobs. */
export async function startChild<P, A>(entry: URL, bounds: Bounds): Promise<Child<P, A>> {
  const program = fileURLToPath(entry)
  const child = launch(program, bounds)
  const gone = goneOf(child)
  const end = async () => {
    child.ref()
    // Not asked to: it may be in the middle of a job, and then it hears nothing.
    killGroup(child)
    await gone
  }
  const first = await heard<A>(child, { steps: { wallMs: START_MS }, act: () => undefined })
  if (first.is !== 'ready') {
    await end()
    throw new Error(`${program} did not start: ${'how' in first ? first.how : first.is}`)
  }
  let usedMicros = first.cpuMicros

  async function ask(payload: P, { cpuMs, pieces = [] }: Parameters<Child<P, A>['ask']>[1] = {}): Promise<Outcome<A>> {
    const before = usedMicros
    const act = () => void send(child, payload, pieces)
    const said = await heard<A>(child, { steps: bounds, act, usedMicros, ...(cpuMs !== undefined && { cpuMs }) })
    if (said.is === 'answer') {
      usedMicros = said.cpuMicros
      return { kind: 'answer', answer: said.answer, cpuMs: (usedMicros - before) / 1000 }
    }
    // After anything but an answer nobody knows what state it is in.
    await end()
    if (said.is === 'too slow') return { kind: 'too slow', by: said.by, steps: said.steps }
    if (said.is === 'ended') {
      const of = OUT_OF_MEMORY.has(said.signal) ? 'memory' : 'other'
      return { kind: 'died', of, how: said.how, steps: said.steps }
    }
    throw new Error(`${program} failed: ${said.is === 'broken' ? said.why : said.is}`)
  }

  return { pid: child.pid!, held: new Map(), ask, end, gone }
}

/**
 * Each message is printed in one go, which for 50 MB of files would take half a second: between two of them others have
 * their turn.
 */
async function send(child: ChildProcess, job: unknown, pieces: readonly unknown[]): Promise<void> {
  const messages: ToolMessage<unknown>[] = [...pieces.map((piece) => ({ piece })), { job }]
  for (const one of messages) {
    const error = await new Promise<Error | null>((resolve) => child.send(one, resolve))
    // It takes no word, so it is on its way out.
    if (error) return killGroup(child)
    await setImmediate()
  }
}

function launch(program: string, { heapMb, dataMb, stackKb, user }: Bounds): ChildProcess {
  const node = [
    process.execPath,
    '--disable-warning=ExperimentalWarning',
    `--max-old-space-size=${heapMb}`,
    ...(stackKb === undefined ? [] : [`--stack-size=${stackKb}`]),
    program,
  ]
  const isLimited = dataMb !== undefined && process.platform === 'linux'
  const [file, ...args] = isLimited ? ['/bin/sh', '-c', LIMITED, 'sh', String(dataMb * 1024), ...node] : node
  return spawn(file!, args, {
    env: {},
    // It reads nothing from there. The folder of temporary files is where tests look for what is left of them.
    cwd: tmpdir(),
    ...user,
    // A group of its own, so that what it has started itself ends with it.
    detached: true,
    // Answers come over the channel; what Node prints when the memory is used up is told in our own words.
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
  })
}

/** Shell script that becomes the program under the memory limit. A lower limit of the machine stays. */
const LIMITED = 'ulimit -c 0; ulimit -d "$1" || :; shift; exec "$@"'

/** Kills the group, also after the child's end: a group lasts as long as one of its processes does. */
function killGroup({ pid }: ChildProcess): void {
  if (pid === undefined) return
  try {
    process.kill(-pid, 'SIGKILL')
  } catch (error) {
    // Nothing is left of it.
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}

/** Resolves when the child is gone. A child that could not be started has an error and no exit. */
function goneOf(child: ChildProcess): Promise<void> {
  return new Promise((resolve) => {
    child.once('exit', () => {
      killGroup(child)
      resolve()
    })
    child.on('error', () => child.pid === undefined && resolve())
  })
}

type Heard<A> =
  | Exclude<Said<A>, { is: 'step' }>
  | { is: 'too slow'; by: 'cpu' | 'clock'; steps: number }
  | { is: 'ended'; signal: string | null; how: string; steps: number }

interface Hearing {
  /** Sends the job to the process. */
  act: () => void
  /** Bounds of each step. */
  steps: Pick<Bounds, 'cpuMs' | 'wallMs'>
  /** Limit of processor time for the first step, where it differs. */
  cpuMs?: number
  /** Processor time that the process had used before. */
  usedMicros?: number
}

/** Acts, and waits for one message of the process, its death, or the end of its time. */
function heard<A>(child: ChildProcess, { act, steps: bounds, ...hearing }: Hearing): Promise<Heard<A>> {
  const { wallMs } = bounds
  return new Promise((resolve) => {
    let cpuMs = hearing.cpuMs ?? bounds.cpuMs
    let fromMicros = hearing.usedMicros ?? 0
    let from = performance.now()
    let steps = 0
    let timer: NodeJS.Timeout | undefined
    const settle = (what: Heard<A>) => {
      clearTimeout(timer)
      child.off('message', onMessage).off('error', onError).off('exit', onExit)
      // An idle process must not keep the coordinator from ending.
      child.unref()
      child.channel?.unref()
      resolve(what)
    }
    const onMessage = (message: unknown) => {
      const said = message as Said<A>
      if (said.is !== 'step') return settle(said)
      steps++
      cpuMs = bounds.cpuMs
      fromMicros = said.cpuMicros
      from = performance.now()
      wait()
      probe('tools.step', { pid: child.pid! })
    }
    const onError = (error: Error) => {
      if (child.pid === undefined) settle({ is: 'ended', signal: null, how: error.message, steps })
      else killGroup(child)
    }
    const onExit = (code: number | null, signal: string | null) =>
      settle({ is: 'ended', signal, how: signal ?? `exit code ${code}`, steps })
    const look = () => {
      const leftMs = Math.min(wallMs - (performance.now() - from), cpuLeftMs())
      if (leftMs > 0) timer = setTimeout(look, Math.max(leftMs, LOOK_MS))
      else settle({ is: 'too slow', by: performance.now() - from >= wallMs ? 'clock' : 'cpu', steps })
    }
    const wait = () => {
      clearTimeout(timer)
      // The processor time cannot run faster than the clock, but for the threads that collect garbage.
      timer = setTimeout(look, Math.min(wallMs, cpuMs ?? wallMs))
    }
    const cpuLeftMs = () => {
      if (cpuMs === undefined) return Infinity
      const used = cpuMicrosOf(child.pid!)
      if (used === undefined) return cpuMs * UNREAD_FACTOR - (performance.now() - from)
      return cpuMs - (used - fromMicros) / 1000
    }
    child.on('message', onMessage).on('error', onError).on('exit', onExit)
    child.ref()
    child.channel?.ref()
    wait()
    act()
  })
}

/** The least between two looks at the processor time. */
const LOOK_MS = 10
