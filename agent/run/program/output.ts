import { setImmediate as nextTurn } from 'node:timers/promises'
import type { SuspendKind } from '@windlass/shared/wire/journal.ts'
import type { LogData } from '@windlass/shared/wire/program.ts'
import type { RawStream } from '../hosts/host-process.ts'
import { createLineSplitter, fitting, type LineSplitter } from './lines.ts'
import { parseable } from './frame-limits.ts'
import { BrokenFrame, type Frame } from './frames.ts'
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
  | { at: number; channel: 'resume'; type: 'resume'; data: 'timed-out' | null }

/** A promise means: not so fast. Nothing more is read from the program until it settles. */
export type OnEvents = (batch: ProgramEvent[]) => void | Promise<void>

export interface ProgramOutput {
  frames(frames: Frame[]): void
  /** The lines that are complete with that. The program will not tell them again: whoever asked adds them. */
  raw(stream: RawStream, chunk: Buffer): ProgramEvent[]
  /** What came last past the frames may be the beginning of a secret. */
  isInSecret(): boolean
  /** What the agent itself has to say about the program, in its place among the rest. */
  add(events: ProgramEvent[]): void
  /** When the program said how it ended. */
  endedAt(): number | undefined
  /** Lines that never got their line break. */
  flush(): void
  /** What the next process of the run would have to go on with. */
  leftLines(): LineSplitters | undefined
  /** Waits until pipes are read to their end; as long as nobody takes the events, that is not the program's fault. */
  drained(read: Promise<void>, isWanted: () => boolean): Promise<void>
  /** How many frames of the run have been read; null while something of what they brought is held back, or still to be told again. */
  framesRead(): { frames: number | null; journal: number }
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
  /** Of its process, where that was started before. */
  startedAt?: number | undefined
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
  return new OutputOfProgram(options)
}

/** Frames and raw bytes become events here, in their order; secrets are hidden on the way. */
class OutputOfProgram implements ProgramOutput {
  readonly #options: OutputOptions
  readonly #startedAt: number
  readonly #inReplay: LineSplitters
  #splitters: LineSplitters
  /** Of a message that comes in pieces, as long as there are more. */
  #message: RedactionStream | undefined
  readonly #pending = new Set<Promise<void>>()
  #isRawReplaying: boolean
  #hasBegun: boolean
  #hasEnded = false
  #endedAt: number | undefined
  #frameCount: number
  #journalCount: number
  #knownEvents: number

  constructor(options: OutputOptions) {
    const { known, startedAt = Date.now() } = options
    this.#options = options
    this.#startedAt = startedAt
    this.#inReplay = createSplitters(options)
    this.#splitters = this.#inReplay
    this.#isRawReplaying = options.isReplaying()
    this.#frameCount = known?.frames ?? 0
    this.#journalCount = known?.journal ?? 0
    this.#hasBegun = this.#frameCount > 0
    this.#knownEvents = known?.events ?? 0
  }

  frames(frames: Frame[]): void {
    const events: ProgramEvent[] = []
    try {
      for (const frame of frames) events.push(...this.#eventsOfFrame(frame))
    } finally {
      // What stands before a frame that cannot be read was told.
      this.add(this.#beyondKnown(events))
    }
  }

  raw(stream: RawStream, chunk: Buffer): ProgramEvent[] {
    const lines = (this.#isRawReplaying ? this.#inReplay : this.#splitters)[stream].push(chunk)
    return this.#isRawReplaying ? [] : logEvents(lines, Date.now(), stream)
  }

  isInSecret(): boolean {
    const { stdout, stderr } = this.#splitters
    return stdout.isInSecret() || stderr.isInSecret()
  }

  #eventsOfFrame(given: Frame): ProgramEvent[] {
    const { redactor } = this.#options
    if (given.name === 'returned' || given.name === 'threw') {
      // The first one counts, and each is looked through for secrets at any size that an output may have.
      if (this.#hasEnded) return this.#passOver(given)
      this.#hasEnded = true
    }
    this.#count(given)
    const raw = parseable(given)
    const frame = redactor ? hideInFrame(redactor, raw) : raw
    const at = this.#plausible(frame.at)
    if (this.#hasEnded) this.#endedAt ??= at
    const events = this.#options.onFrame(frame, at)
    const printed = frame.name === 'log' ? this.#logged(frame, raw, at) : this.#printed(frame, at)
    if (this.#options.isReplaying()) return events
    if (this.#isRawReplaying) this.#endReplay()
    return [...events, ...printed]
  }

  #passOver(frame: Frame): ProgramEvent[] {
    this.#count(frame)
    return []
  }

  #count({ name }: Frame): void {
    if (name === 'ready' || name === 'begun') {
      if (this.#hasBegun) throw new BrokenFrame(`a ${name} in the midst of a run`)
      // It may have been booting still when it was given the run.
      if (name === 'ready') return
      this.#hasBegun = true
      this.#frameCount = this.#journalCount = 0
    }
    this.#frameCount += 1
    if (name === 'journal') this.#journalCount += 1
  }

  /** The program's clock can be anything. */
  #plausible(at: number): number {
    const now = Date.now()
    return at >= this.#startedAt && at <= now ? Math.trunc(at) : now
  }

  #printed(frame: Frame, at: number): ProgramEvent[] {
    if (frame.name === 'out') return logEvents(this.#splitters.out.push(frame.payload), at, 'stdout')
    if (frame.name === 'err') return logEvents(this.#splitters.err.push(frame.payload), at, 'stderr')
    if (frame.name !== 'phase') return []
    return [{ at, channel: 'phase', type: 'phase', data: phaseIn(frame, this.#options.eventDataBytes) }]
  }

  /**
   * A long message comes in pieces, and what is to be hidden may be cut in two. So it is looked for in the pieces as
   * they were sent: of a secret that begins with another one, the first piece would have lost the beginning already.
   */
  #logged(frame: Frame, raw: Frame, at: number): ProgramEvent[] {
    const { redactor, eventDataBytes } = this.#options
    const { more, ...data } = logIn(frame, eventDataBytes)
    const stream = data.level === 'warn' || data.level === 'error' ? 'stderr' : 'stdout'
    const event = (hidden: unknown): ProgramEvent => ({
      at,
      channel: 'log',
      type: `log.${stream}`,
      data: { ...data, text: hidden },
    })
    if (!redactor || (!more && !this.#message)) return fitting(String(data.text), eventDataBytes).map(event)
    this.#message ??= redactor.stream()
    const { text }: Partial<LogData> = parsePayload(raw)
    const certain = this.#message.push(Buffer.from(String(text))).toString()
    if (more) return certain === '' ? [] : fitting(certain, eventDataBytes).map(event)
    const rest = this.#message.end().toString()
    this.#message = undefined
    return fitting(certain + rest, eventDataBytes).map(event)
  }

  #endReplay(): void {
    const { lines, redactor } = this.#options
    if (lines) {
      this.#splitters = lines
      for (const each of Object.values(lines)) each.hideWith(redactor)
    }
    void this.#endRawReplay()
  }

  /** What went past the frames lies in its pipes already when a frame says that the replay is over. */
  async #endRawReplay(): Promise<void> {
    await nextTurn()
    await nextTurn()
    this.#isRawReplaying = false
  }

  add(events: ProgramEvent[]): void {
    if (events.length === 0) return
    try {
      const taking = this.#options.onEvents(events)
      if (taking) void this.#wait(taking)
    } catch (error) {
      this.#options.failed(error)
    }
  }

  /** Without what a program that was taken back tells again: its frames, and nothing else. */
  #beyondKnown(events: ProgramEvent[]): ProgramEvent[] {
    if (this.#knownEvents === 0) return events
    const again = events.slice(0, this.#knownEvents)
    this.#knownEvents -= again.length
    const journal = again.filter(({ channel }) => channel === 'journal')
    if (journal.length > 0) this.#options.known?.onJournal(journal.length)
    return events.slice(again.length)
  }

  async #wait(taking: Promise<void>): Promise<void> {
    this.#options.pause()
    this.#pending.add(taking)
    try {
      await taking
    } catch (error) {
      this.#options.failed(error)
    }
    this.#pending.delete(taking)
    if (this.#pending.size === 0) this.#options.resume()
  }

  endedAt(): number | undefined {
    return this.#endedAt
  }

  flush(): void {
    // They are no later than what the program said last.
    const at = this.#endedAt ?? Date.now()
    const { out, err, stdout, stderr } = this.#splitters
    const ofOut = [...out.flush(), ...stdout.flush()]
    const ofErr = [...err.flush(), ...stderr.flush()]
    this.add([...logEvents(ofOut, at, 'stdout'), ...logEvents(ofErr, at, 'stderr')])
  }

  leftLines(): LineSplitters | undefined {
    return this.#options.isReplaying() ? this.#options.lines : this.#splitters
  }

  drained(read: Promise<void>, isWanted: () => boolean): Promise<void> {
    const isSlow = () => isWanted() && this.#pending.size > 0
    return untilRead(read, { eachMs: PIPES_MS, mostMs: BLOCKED_MS, isSlow })
  }

  framesRead(): { frames: number | null; journal: number } {
    const lines = Object.values(this.#splitters)
    const isAll =
      this.#knownEvents === 0 && !this.#isRawReplaying && !this.#message && lines.every((each) => each.isEmpty())
    return { frames: isAll ? this.#frameCount : null, journal: this.#journalCount }
  }

  async taken(): Promise<void> {
    while (this.#pending.size > 0) await Promise.allSettled(this.#pending)
  }
}

function logEvents(lines: string[], at: number, stream: RawStream): ProgramEvent[] {
  const type = `log.${stream}`
  return lines.map((text) => ({ at, channel: 'log', type, data: { text } }))
}
