import type { LogData } from '@windlass/shared/wire/program.ts'
import { MOST_LEVELS, nestsWithin } from '@windlass/shared/json-nesting.ts'
import type { RawStream } from './host-process.ts'
import { createLineSplitter, type LineSplitter } from './lines.ts'
import { BrokenFrame, type Frame } from './program-frames.ts'

export interface ProgramEvent {
  /** Milliseconds since the epoch. */
  at: number
  channel: 'phase' | 'log'
  /** `phase`, `log.stdout` or `log.stderr`. */
  type: string
  data: unknown
}

/** A promise means: not so fast. Nothing more is read from the program until it settles. */
export type OnEvents = (batch: ProgramEvent[]) => void | Promise<void>

export interface ProgramOutput {
  frames(frames: Frame[]): void
  raw(stream: RawStream, chunk: Buffer): void
  /** Lines that never got their line break. */
  flush(): void
  isBlocked(): boolean
  /** Resolves when whoever takes the events has taken what was given so far. */
  taken(): Promise<void>
}

interface OutputOptions {
  onEvents: OnEvents
  pause: () => void
  resume: () => void
  /** The events cannot be kept any more. */
  failed: (error: unknown) => void
}

// The largest event, with room for what a frame says besides its data.
const EVENT_BYTES = 64 * 1024 + 512

export function createProgramOutput(options: OutputOptions): ProgramOutput {
  const startedAt = Date.now()
  // JavaScript's streams and the bare descriptors come through different pipes; each may be in the middle of a character.
  const splitters = {
    out: createLineSplitter(),
    err: createLineSplitter(),
    stdout: createLineSplitter(),
    stderr: createLineSplitter(),
  }
  const pending = new Set<Promise<void>>()

  /** The program's clock can be anything. */
  const plausible = (at: number) => {
    const now = Date.now()
    return at >= startedAt && at <= now ? Math.trunc(at) : now
  }

  function give(batch: ProgramEvent[]): void {
    if (batch.length === 0) return
    try {
      const taking = options.onEvents(batch)
      if (taking) void wait(taking)
    } catch (error) {
      options.failed(error)
    }
  }

  async function wait(taking: Promise<void>): Promise<void> {
    options.pause()
    pending.add(taking)
    try {
      await taking
    } catch (error) {
      options.failed(error)
    }
    pending.delete(taking)
    if (pending.size === 0) options.resume()
  }

  return {
    frames: (frames) => give(frames.flatMap((frame) => eventsOf(frame, plausible(frame.at), splitters))),
    raw: (stream, chunk) => give(logEvents(splitters[stream].push(chunk), Date.now(), stream)),
    flush: () => {
      const at = Date.now()
      const stdout = [...splitters.out.flush(), ...splitters.stdout.flush()]
      const stderr = [...splitters.err.flush(), ...splitters.stderr.flush()]
      give([...logEvents(stdout, at, 'stdout'), ...logEvents(stderr, at, 'stderr')])
    },
    isBlocked: () => pending.size > 0,
    taken: async () => {
      while (pending.size > 0) await Promise.allSettled(pending)
    },
  }
}

function eventsOf(frame: Frame, at: number, splitters: { out: LineSplitter; err: LineSplitter }): ProgramEvent[] {
  if (frame.name === 'out') return logEvents(splitters.out.push(frame.payload), at, 'stdout')
  if (frame.name === 'err') return logEvents(splitters.err.push(frame.payload), at, 'stderr')
  if (frame.name === 'phase') return [{ at, channel: 'phase', type: 'phase', data: parse(frame) }]
  if (frame.name !== 'log') return []
  const data: Partial<LogData> = parse(frame)
  const stream = data.level === 'warn' || data.level === 'error' ? 'stderr' : 'stdout'
  return [{ at, channel: 'log', type: `log.${stream}`, data }]
}

function logEvents(lines: string[], at: number, stream: RawStream): ProgramEvent[] {
  const type = `log.${stream}`
  return lines.map((text) => ({ at, channel: 'log', type, data: { text } }))
}

/** What nests too deep can be read, but not be written again. */
const TOO_DEEP: LogData = { text: `Left out: the data of this event nests deeper than ${MOST_LEVELS} levels.` }

function parse(frame: Frame): object {
  if (frame.payload.length > EVENT_BYTES) throw new BrokenFrame(`a ${frame.name} of ${frame.payload.length} bytes`)
  const data = parsePayload(frame)
  return nestsWithin(data, MOST_LEVELS) ? data : TOO_DEEP
}

export function parsePayload(frame: Frame): object {
  try {
    const value: unknown = JSON.parse(frame.payload.toString())
    if (typeof value === 'object' && value !== null) return value
  } catch (error) {
    throw new BrokenFrame(`a ${frame.name} that is not JSON: ${String(error)}`)
  }
  throw new BrokenFrame(`a ${frame.name} that is no object`)
}
