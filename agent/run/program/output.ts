import { setImmediate as nextTurn } from 'node:timers/promises'
import type { SuspendKind } from '@windlass/shared/wire/journal.ts'
import type { LogData } from '@windlass/shared/wire/program.ts'
import type { RawStream } from '../hosts/host-process.ts'
import { createLineSplitter, fitting, type LineSplitter } from './lines.ts'
import type { Frame } from './frames.ts'
import { logIn, parsePayload, phaseIn } from './reports.ts'
import { hideInFrame } from '../redact/frames.ts'
import type { Redactor } from '../redact/redactor.ts'
import type { RedactionStream } from '../redact/stream.ts'
import { untilRead } from './within.ts'

/** What a program has said or done, in its order. `at` is in milliseconds since the epoch. */
export type ProgramEvent =
  /** `type` is `phase`, `log.stdout` or `log.stderr`. */
  | { at: number; channel: 'phase' | 'log'; type: string; data: unknown }
  /** `data` is JSON of a `JournalOp`. */
  | { at: number; channel: 'journal'; type: 'journal'; data: string }
  | { at: number; channel: 'park'; type: 'park'; data: { waitsFor: SuspendKind; computeMs: number } }
  | { at: number; channel: 'resume'; type: 'resume'; data: null }

/** A promise means: not so fast. Nothing more is read from the program until it settles. */
export type OnEvents = (batch: ProgramEvent[]) => void | Promise<void>

export interface ProgramOutput {
  frames(frames: Frame[]): void
  raw(stream: RawStream, chunk: Buffer): void
  /** What the agent itself has to say about the program, in its place among the rest. */
  add(events: ProgramEvent[]): void
  /** Lines that never got their line break. */
  flush(): void
  /** What the next process of the run would have to go on with. */
  leftLines(): LineSplitters | undefined
  /** Waits until pipes are read to their end; as long as nobody takes the events, that is not the program's fault. */
  drained(read: Promise<void>, isWanted: () => boolean): Promise<void>
  /** How many frames of the run have been read; null while something of what they brought is held back, or still to be told again. */
  framesTold(): { frames: number | null; journal: number }
  /** Resolves when whoever takes the events has taken what was given so far. */
  taken(): Promise<void>
}

interface OutputOptions {
  onEvents: OnEvents
  /** Sees every frame in its turn. What it answers stands in front of what the frame itself brings. */
  onFrame(frame: Frame, at: number): ProgramEvent[]
  /** What the program prints now it has printed before: it is not passed on. Lines that are not complete are kept. */
  isReplaying(): boolean
  /** What the process before this one had left; known only where it ran here. */
  lines: LineSplitters | undefined
  /** Nothing comes out of here that it would hide. */
  redactor: Redactor | undefined
  /** What the program may put into an event, in bytes of JSON. */
  eventDataBytes: number
  pause: () => void
  resume: () => void
  /** Of a program that was taken back: what was read of it before, and how many events of what it tells again are known. */
  known?: { frames: number; journal: number; events: number; onJournal(count: number): void } | undefined
  /** The events cannot be kept any more. */
  failed: (error: unknown) => void
}

const PIPES_MS = 2_000
const BLOCKED_MS = 60_000

/** JavaScript's streams and the bare descriptors come through different pipes; each may be in the middle of a character. */
export type LineSplitters = Record<'out' | 'err' | RawStream, LineSplitter>

function createSplitters({ redactor, eventDataBytes }: OutputOptions): LineSplitters {
  return {
    out: createLineSplitter(redactor, eventDataBytes),
    err: createLineSplitter(redactor, eventDataBytes),
    stdout: createLineSplitter(redactor, eventDataBytes),
    stderr: createLineSplitter(redactor, eventDataBytes),
  }
}

export function createProgramOutput(options: OutputOptions): ProgramOutput {
  const startedAt = Date.now()
  const { redactor, eventDataBytes } = options
  const inReplay = createSplitters(options)
  let splitters = inReplay
  /** Of a message that comes in pieces, as long as there are more. */
  let message: RedactionStream | undefined
  const pending = new Set<Promise<void>>()
  let isRawReplaying = options.isReplaying()
  let frameCount = options.known?.frames ?? 0
  let journalCount = options.known?.journal ?? 0
  let knownEvents = options.known?.events ?? 0

  /** The program's clock can be anything. */
  const plausible = (at: number) => {
    const now = Date.now()
    return at >= startedAt && at <= now ? Math.trunc(at) : now
  }

  function give(events: ProgramEvent[]): void {
    const batch = knownEvents === 0 ? events : beyondKnown(events)
    if (batch.length === 0) return
    try {
      const taking = options.onEvents(batch)
      if (taking) void wait(taking)
    } catch (error) {
      options.failed(error)
    }
  }

  /** What a program that was taken back tells again. */
  function beyondKnown(events: ProgramEvent[]): ProgramEvent[] {
    const again = events.slice(0, knownEvents)
    knownEvents -= again.length
    const journal = again.filter(({ channel }) => channel === 'journal')
    if (journal.length > 0) options.known?.onJournal(journal.length)
    return events.slice(again.length)
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

  function count({ name }: Frame): void {
    if (name === 'begun') frameCount = journalCount = 0
    frameCount += 1
    if (name === 'journal') journalCount += 1
  }

  function eventsOfFrame(raw: Frame): ProgramEvent[] {
    const frame = redactor ? hideInFrame(redactor, raw) : raw
    count(frame)
    const at = plausible(frame.at)
    const told = options.onFrame(frame, at)
    const printed = frame.name === 'log' ? logged(frame, raw, at) : eventsOf(frame, at, { splitters, eventDataBytes })
    if (options.isReplaying()) return told
    if (isRawReplaying) endReplay()
    return [...told, ...printed]
  }

  /**
   * A long message comes in pieces, and what is to be hidden may be cut in two. So it is looked for in the pieces as they were sent: of a
   * secret that begins with another one, the first piece would have lost the beginning already.
   */
  function logged(frame: Frame, raw: Frame, at: number): ProgramEvent[] {
    const { more, ...data } = logIn(frame, eventDataBytes)
    const stream = data.level === 'warn' || data.level === 'error' ? 'stderr' : 'stdout'
    const event = (hidden: unknown): ProgramEvent => ({
      at,
      channel: 'log',
      type: `log.${stream}`,
      data: { ...data, text: hidden },
    })
    if (!redactor || (!more && !message)) return fitting(String(data.text), eventDataBytes).map(event)
    message ??= redactor.stream()
    const { text }: Partial<LogData> = parsePayload(raw)
    const certain = message.push(Buffer.from(String(text))).toString()
    if (more) return certain === '' ? [] : fitting(certain, eventDataBytes).map(event)
    const rest = message.end().toString()
    message = undefined
    return fitting(certain + rest, eventDataBytes).map(event)
  }

  function endReplay(): void {
    if (options.lines) {
      splitters = options.lines
      for (const lines of Object.values(splitters)) lines.hideWith(redactor)
    }
    void endRawReplay()
  }

  /** What went past the frames lies in its pipes already when a frame says that the replay is over. */
  async function endRawReplay(): Promise<void> {
    await nextTurn()
    await nextTurn()
    isRawReplaying = false
  }

  return {
    frames: (frames) => give(frames.flatMap(eventsOfFrame)),
    raw: (stream, chunk) => {
      const lines = (isRawReplaying ? inReplay : splitters)[stream].push(chunk)
      if (!isRawReplaying) give(logEvents(lines, Date.now(), stream))
    },
    add: give,
    flush: () => {
      const at = Date.now()
      const stdout = [...splitters.out.flush(), ...splitters.stdout.flush()]
      const stderr = [...splitters.err.flush(), ...splitters.stderr.flush()]
      give([...logEvents(stdout, at, 'stdout'), ...logEvents(stderr, at, 'stderr')])
    },
    leftLines: () => (options.isReplaying() ? options.lines : splitters),
    drained: (read, isWanted) =>
      untilRead(read, { eachMs: PIPES_MS, mostMs: BLOCKED_MS, isSlow: () => isWanted() && pending.size > 0 }),
    framesTold: () => {
      const lines = Object.values(splitters)
      const isAll = knownEvents === 0 && !isRawReplaying && !message && lines.every((each) => each.isEmpty())
      return { frames: isAll ? frameCount : null, journal: journalCount }
    },
    taken: async () => {
      while (pending.size > 0) await Promise.allSettled(pending)
    },
  }
}

type Into = Pick<OutputOptions, 'eventDataBytes'> & { splitters: LineSplitters }

function eventsOf(frame: Frame, at: number, { splitters, eventDataBytes }: Into): ProgramEvent[] {
  if (frame.name === 'out') return logEvents(splitters.out.push(frame.payload), at, 'stdout')
  if (frame.name === 'err') return logEvents(splitters.err.push(frame.payload), at, 'stderr')
  return frame.name === 'phase' ? [{ at, channel: 'phase', type: 'phase', data: phaseIn(frame, eventDataBytes) }] : []
}

function logEvents(lines: string[], at: number, stream: RawStream): ProgramEvent[] {
  const type = `log.${stream}`
  return lines.map((text) => ({ at, channel: 'log', type, data: { text } }))
}
