import path from 'node:path'
import type { Readable, Stream, Writable } from 'node:stream'
import { probe } from '@windlass/shared/probe.ts'
import type { Enclosure } from '../../isolation/enclosure.ts'
import { MARKER } from '../../os/environment.ts'
import { descriptorsOf } from '../../os/named-pipes.ts'
import { launch, type Exit, type Launched, type OwnPipes } from '../../os/process.ts'
import { WITHOUT_RUN } from '../program/frame-limits.ts'
import { createFrameReader, type Frame, type MostBytes } from '../program/frames.ts'
import { openMessageLine, type MessageLine } from './message-line.ts'
import type { PipeWatch } from './pipe-watch.ts'
import { readInTurns } from './read-in-turns.ts'

export type RawStream = 'stdout' | 'stderr'

export interface RawOutput {
  stream: RawStream
  chunk: Buffer
}

/** Whoever executes a run in the process hears what it says. */
export interface HostListener {
  /** What it takes. */
  readonly mostBytes: MostBytes
  /** At least one. */
  frames(frames: Frame[]): void
  /** What bypassed JavaScript's streams: native children, mostly. */
  raw(stream: RawStream, chunk: Buffer): void
  broken(error: unknown): void
}

/** A process that has the runtime loaded and can execute a program. */
export interface HostProcess extends MessageLine {
  /** Of the process that was started, and of its group. The program's own is another one where it is in bubblewrap. */
  readonly pid: number | undefined
  readonly marker: string
  readonly enclosure: Enclosure
  /** Name of the pipes that are its descriptors 1 and 2; undefined where they end with this agent. */
  readonly rawPipes: string | undefined
  /** Name of the folder of its runtime; undefined where an earlier agent has not said it. */
  readonly runtime: string | undefined
  /** Of the run that it has, or of all that it will ever have. */
  workspace: string | undefined
  /** Settles when the process itself is gone. */
  readonly exit: Promise<Exit>
  /** Everything it wrote as frames has been read; everything that it and its children wrote at all. */
  readonly framesRead: Promise<void>
  readonly allRead: Promise<void>
  /** Resolves when a program may begin in it; undefined: it may at any time. */
  readonly sealed: Promise<void> | undefined
  /** Runs it has been given so far. */
  runs: number
  isReady(): boolean
  hasExited(): boolean
  /** It has written something while it was nobody's: it is not as clean as it should be. */
  isTainted(): boolean
  listen(listener: HostListener | null): void
  /** Tells the listener what one before it had been told. */
  repeat(raw: readonly RawOutput[]): void
  kill(): void
  pause(): void
  resume(): void
  /** Lets go of the pipes, read or not. */
  release(): void
}

export interface HostOptions {
  /** Says which command it is. */
  enclosure: Enclosure
  marker: string
  /** Where its runtime lies. */
  cwd: string
  environment: Record<string, string>
  /** Undefined where none can be made: then it gets sockets. */
  pipes: OwnPipes | undefined
  /** Name of those for its descriptors 1 and 2, where they outlive this agent. */
  rawPipes?: string | undefined
  watch: PipeWatch
  /** Called with the first word of the process, where no program may begin in it before. Answers whether one may. */
  onSpeaks?: (() => boolean) | undefined
}

export function startHost(options: HostOptions): HostProcess {
  const { enclosure, marker, pipes } = options
  const child = launch({
    ...enclosure.command,
    cwd: options.cwd,
    env: { ...options.environment, [MARKER]: marker },
    morePipes: pipes ? 0 : 2,
    stdin: 'ignore',
    pipes,
  })
  const { pid, stdout, stderr } = child
  const exit = child.exited.then((how) => {
    // A pipe that nobody writes to does not tell that its reader has gone.
    pipes?.messages.write.destroy()
    return enclosure.exitOf(how)
  })
  const lines = pipes ? { frames: pipes.frames.read, messages: pipes.messages.write } : overSockets(child)
  const { cwd, rawPipes } = options
  const its = { pid, exit, rawPipes, runtime: path.basename(cwd) }
  return hostOver({ ...options, ...lines, ...its, raw: { stdout, stderr } })
}

function overSockets({ more: [frames, messages] }: Launched): Pick<HostLines, 'frames' | 'messages'> {
  if (!frames || !messages) throw new Error('a process was started without its pipes')
  // Nothing comes this way, but an end that nobody reads is never seen.
  messages.resume()
  return { frames, messages }
}

export interface HostLines extends Pick<HostProcess, 'enclosure' | 'marker' | 'rawPipes' | 'runtime'> {
  watch: PipeWatch
  pid: number | undefined
  exit: Promise<Exit>
  frames: Readable
  messages: Writable
  raw: Record<RawStream, Readable>
  onSpeaks?: HostOptions['onSpeaks']
}

/** A process that is there, by what leads to it. */
export function hostOver({ enclosure, marker, pid, frames, messages, raw, ...options }: HostLines): HostProcess {
  const sources = [frames, ...Object.values(raw)]
  const lines = [...sources, messages]
  let listener: HostListener | null = null
  const { read, sealed } = readFrames(() => listener?.mostBytes ?? WITHOUT_RUN, options.onSpeaks)
  let ready = false
  let exited = false
  let tainted = false
  const onReady = () => {
    ready = true
    probe('process.ready', { pid })
  }
  const onBroken = (error: unknown) => {
    frames.destroy()
    tainted = true
    listener?.broken(error)
  }
  const onFrames = (chunk: Buffer) => {
    const { frames: found, broken } = read(chunk)
    try {
      // Of a large frame most chunks complete nothing.
      if (found.length > 0 && listener) listener.frames(found)
      else if (found.length > 0) onReady()
    } catch (error) {
      return onBroken(error)
    }
    if (broken) onBroken(broken)
  }
  const onRaw = (stream: RawStream) => (chunk: Buffer) => {
    if (listener) listener.raw(stream, chunk)
    else tainted = true
  }

  const readers = [
    readInTurns(frames, onFrames),
    readInTurns(raw.stdout, onRaw('stdout')),
    readInTurns(raw.stderr, onRaw('stderr')),
  ]
  watchLines(lines, { ...options, pid, enclosure }, onBroken)
  const exit = options.exit.then((how) => {
    exited = true
    return how
  })

  return {
    pid,
    marker,
    enclosure,
    rawPipes: options.rawPipes,
    runtime: options.runtime,
    workspace: undefined,
    exit,
    framesRead: closed(frames),
    allRead: allClosed(sources),
    sealed,
    runs: 0,
    isReady: () => ready,
    hasExited: () => exited,
    isTainted: () => tainted,
    listen: (next) => {
      listener = next
    },
    repeat: (raw) => raw.forEach(({ stream, chunk }) => listener?.raw(stream, chunk)),
    ...openMessageLine(messages),
    kill: () => {
      if (pid !== undefined) enclosure.kill(pid)
    },
    pause: () => readers.forEach((reader) => reader.pause()),
    resume: () => readers.forEach((reader) => reader.resume()),
    release: () => lines.forEach((stream) => stream.destroy()),
  }
}

type FrameReader = ReturnType<typeof createFrameReader>

/** With the first word of a process it is asked whether a program may begin in it. */
function readFrames(
  mostBytes: () => MostBytes,
  onSpeaks: HostOptions['onSpeaks'],
): Pick<HostProcess, 'sealed'> & { read: FrameReader } {
  const read = createFrameReader(mostBytes)
  if (!onSpeaks) return { read, sealed: undefined }
  const { promise, resolve } = Promise.withResolvers<void>()
  let hasSpoken = false
  const readAndTell: FrameReader = (chunk) => {
    const found = read(chunk)
    if (found.frames.length > 0 && !hasSpoken) {
      hasSpoken = true
      if (onSpeaks()) resolve()
    }
    return found
  }
  return { read: readAndTell, sealed: promise }
}

/** Also when nobody reads any more: closing waits as reading does. */
function watchLines(
  lines: readonly Stream[],
  { watch, pid, enclosure: { uid, folder } }: Pick<HostLines, 'watch' | 'pid' | 'enclosure'>,
  onHeld: (error: unknown) => void,
): void {
  // A process that died breaks its pipes; its exit says all there is to say.
  for (const line of lines) line.on('error', () => {})
  const descriptors = descriptorsOf(lines)
  if (pid === undefined || descriptors.length === 0) return
  const forget = watch.add({ group: pid, uid, folder }, descriptors, onHeld)
  void Promise.all(lines.map((line) => new Promise((resolve) => line.once('close', resolve)))).then(forget)
}

async function allClosed(streams: Readable[]): Promise<void> {
  await Promise.all(streams.map(closed))
}

function closed(stream: Readable): Promise<void> {
  return new Promise((resolve) => {
    stream.once('end', resolve)
    stream.once('close', resolve)
  })
}
