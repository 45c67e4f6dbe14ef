import { probe } from '@windlass/shared/probe.ts'
import type { Pace } from '../pace.ts'
import { createFifo } from '../db/fifo.ts'
import { LEAST_PART_CHARS, type Part, partOf } from '@windlass/shared/wire/parts.ts'
import { POLICY } from './close-codes.ts'
import { saysEntries } from './frames.ts'
import { addTo, isTooMuchOfOrg, isTooMuchOfOthers, isTooMuchOfRunner, newLoad } from './backlog.ts'
import { UnfinishedFrame } from './unfinished-frame.ts'
import {
  FramesOfOrg,
  FramesOfRunner,
  FrameTurns,
  type Open,
  relieve,
  SMALL_CHARS,
  type WaitingFrames,
} from './frame-turns.ts'
import { answered, lookForLate, mayReadMore, opened } from './late-frames.ts'

/** A frame that was read. */
export interface ReadFrame {
  /** Rows that the database has to write or look for. */
  weight: number
  /** Each is begun in its turn, in this order; the frame is answered when all have ended. */
  pieces: readonly (() => Promise<unknown>)[]
}

/** The connection, as its queue sees it. */
interface Receiver {
  /** Undefined for what is no frame; the connection is closed then. */
  read(text: string): ReadFrame | undefined
  failed(error: unknown): void
  close(code: number, reason: string): void
}

/** The frames of one connection, on their way to be read. */
interface FrameQueue {
  /** A frame, or a part of one. */
  add(message: string): void
  /** The connection is closed: what was not begun is dropped. */
  end(): void
}

/**
 * Small frames are read as they come. Larger ones would stop everybody else, so one of an org is read in a turn of the
 * event loop, and each org and connection has its turn. Entries keep their order; what keeps leases alive overtakes
 * them.
 */
export interface FrameQueues {
  open(runner: { id: string; orgId: string }, receiver: Receiver): FrameQueue
}

/** Number of characters that count like one more entry, as in a commit. */
const CHARS_PER_WEIGHT = 4096
/** Most commits take less. To judge an output, or to try out the schema of a question, may take seconds. */
const LATE_MS = 250
const TOO_MUCH = 'more was sent than may wait for its answer'
/** The longest frame. Ours cuts them at 512 Ki, and the text of one output has 8 Mi. */
const MOST_CHARS = 16 * 1024 * 1024

export function createFrameQueues(pace: Pace, lateMs = LATE_MS): FrameQueues {
  const orgs = new Map<string, FramesOfOrg>()
  const loop = new FrameTurns(pace, (org) => org.runners.size === 0 && orgs.delete(org.id))
  return {
    open({ id: runnerId, orgId }, receiver) {
      let org = orgs.get(orgId)
      if (!org) orgs.set(orgId, (org = new FramesOfOrg(orgId, lateMs)))
      let runner = org.runners.get(runnerId)
      if (!runner) org.runners.set(runnerId, (runner = new FramesOfRunner()))
      return new Queue({ runnerId, org, runner, receiver, loop })
    },
  }
}

/** Many small ones are as bad as a large one, when somebody has to give way. */
const costOf = ({ length }: string) => length + 1024

class Queue implements FrameQueue, WaitingFrames {
  readonly #of: { runnerId: string; org: FramesOfOrg; runner: FramesOfRunner; receiver: Receiver; loop: FrameTurns }
  readonly #urgent = createFifo<string>()
  readonly #entries = createFifo<string>()
  /** Of entries that were read: what has not been begun. */
  #pieces: { open: Open; rest: ReadFrame['pieces'] } | undefined
  readonly #others = newLoad()
  readonly #parts = { entries: new UnfinishedFrame(), others: new UnfinishedFrame() }
  /** Its first frame is hello, and comes before all others. */
  #isBegun = false
  #isOver = false

  constructor(of: {
    runnerId: string
    org: FramesOfOrg
    runner: FramesOfRunner
    receiver: Receiver
    loop: FrameTurns
  }) {
    this.#of = of
    of.runner.queues.add(this)
  }

  add(message: string): void {
    if (this.#isOver) return
    const part = partOf(message)
    const text = part ? this.#join(part) : message
    if (text !== undefined && !this.#isOver) this.#addFrame(text)
  }

  /** The whole frame, with its last part. Parts count like frames: they wait here as well. */
  #join({ lane, isLast, text }: Part): string | undefined {
    if (!isLast && text.length < LEAST_PART_CHARS) return this.#refuse('a part is too short')
    if (!this.#isBegun && lane === 'entries') return this.#refuse('hello comes first')
    const parts = this.#parts[lane]
    parts.add(text)
    this.#of.runner.unread += costOf(text)
    this.#count(1, text.length, lane === 'entries')
    if (parts.chars > MOST_CHARS) this.close(POLICY, 'a frame is too long')
    else if (this.#fits() && isLast) return this.#takeParts(lane).join('')
    else if (!this.#isOver) parts.expectMore(() => this.close(POLICY, 'the rest of a frame did not come'))
    return undefined
  }

  #refuse(reason: string): undefined {
    this.close(POLICY, reason)
  }

  #takeParts(lane: Part['lane']): string[] {
    const texts = this.#parts[lane].take()
    for (const text of texts) {
      this.#of.runner.unread -= costOf(text)
      this.#count(-1, text.length, lane === 'entries')
    }
    return texts
  }

  /** False: what was counted is too much, and the connection is closed. */
  #fits(): boolean {
    const { org, runner } = this.#of
    if (isTooMuchOfRunner(runner.load) || isTooMuchOfOthers(this.#others)) this.close(POLICY, TOO_MUCH)
    else if (isTooMuchOfOrg(org.load)) relieve(org)
    return !this.#isOver
  }

  #addFrame(text: string): void {
    const { org, runner, loop } = this.#of
    const isEntries = this.#isBegun && saysEntries(text)
    this.#count(1, text.length, isEntries)
    if (!this.#fits()) return this.#drop(text, isEntries)
    if (this.#comesNext(isEntries) && loop.mayReadNow(org, text.length)) return this.#begin(text, isEntries)
    runner.unread += costOf(text)
    if (isEntries) this.#entries.push(text)
    else this.#urgent.push(text)
    this.wake()
  }

  end(): void {
    if (this.#isOver) return
    this.#isOver = true
    const { org, runner } = this.#of
    for (const [texts, isEntries] of [[this.#urgent, false] as const, [this.#entries, true] as const])
      for (let text = texts.shift(); text !== undefined; text = texts.shift()) {
        runner.unread -= costOf(text)
        this.#count(-1, text.length, isEntries)
      }
    for (const lane of ['entries', 'others'] as const) this.#takeParts(lane)
    org.urgent.delete(this)
    org.entries.delete(this)
    runner.queues.delete(this)
    const pieces = this.#pieces
    this.#pieces = undefined
    if (pieces) this.#leave(pieces.open, pieces.rest.length)
    this.#forget()
  }

  /** Cut off: its agent says everything again on its next connection. */
  close(code: number, reason: string): void {
    this.end()
    this.#of.receiver.close(code, reason)
  }

  mayGoOn(): boolean {
    const { org, runner } = this.#of
    if (this.#pieces || mayReadMore(org, runner)) return true
    lookForLate(org)
    return false
  }

  step(isUrgent: boolean): void {
    const { org, runner } = this.#of
    org.wasUrgent = isUrgent
    org[isUrgent ? 'urgent' : 'entries'].delete(this)
    const texts = isUrgent ? this.#urgent : this.#entries
    if (!isUrgent && this.#pieces) this.#beginPiece()
    else {
      let chars = 0
      do {
        const text = texts.shift()!
        chars += text.length
        runner.unread -= costOf(text)
        this.#begin(text, !isUrgent)
      } while (chars < SMALL_CHARS && texts.length > 0 && !this.#pieces && this.mayGoOn())
    }
    this.wake()
  }

  /** Nothing that must come before it waits. */
  #comesNext(isEntries: boolean): boolean {
    if (this.#urgent.length > 0) return false
    return !isEntries || (this.#entries.length === 0 && this.#pieces === undefined && this.mayGoOn())
  }

  wake(): void {
    if (this.#isOver) return
    const { org, loop } = this.#of
    if (this.#urgent.length > 0) org.urgent.add(this)
    if (this.#pieces || this.#entries.length > 0) org.entries.add(this)
    if (org.urgent.size > 0 || org.entries.size > 0) loop.wake(org)
  }

  #begin(text: string, isEntries: boolean): void {
    const { org, runner, receiver } = this.#of
    this.#isBegun = true
    const frame = receiver.read(text)
    if (!frame) return this.#drop(text, isEntries)
    const { pieces } = frame
    const weight = frame.weight + text.length / CHARS_PER_WEIGHT
    const begunAt = performance.now()
    const open = { runner, chars: text.length, weight, isEntries, left: pieces.length, begunAt, isLate: false }
    opened(org, open)
    probe('frame.read', { runner: this.#of.runnerId, chars: text.length })
    if (pieces.length === 0) return this.#leave(open, 0)
    if (!isEntries || pieces.length === 1) for (const piece of pieces) this.#do(piece, open)
    else {
      this.#pieces = { open, rest: pieces }
      this.#beginPiece()
    }
  }

  #beginPiece(): void {
    const { open, rest } = this.#pieces!
    const [piece, ...others] = rest
    this.#pieces = others.length > 0 ? { open, rest: others } : undefined
    if (piece) this.#do(piece, open)
  }

  #do(piece: () => Promise<unknown>, open: Open): void {
    piece()
      .catch((error: unknown) => this.#of.receiver.failed(error))
      .finally(() => this.#leave(open, 1))
  }

  /** So many pieces of a frame have ended; with the last one it is no longer under way. */
  #leave(open: Open, pieces: number): void {
    open.left -= pieces
    if (open.left > 0) return
    const mayReadOn = answered(this.#of.org, open)
    this.#count(-1, open.chars, open.isEntries)
    for (const { queues } of mayReadOn) for (const queue of queues) queue.wake()
    this.#forget()
  }

  #count(by: 1 | -1, chars: number, isEntries: boolean): void {
    const { org, runner } = this.#of
    addTo(org.load, by, chars)
    addTo(runner.load, by, chars)
    if (!isEntries) addTo(this.#others, by, chars)
  }

  #drop({ length }: string, isEntries: boolean): void {
    this.#count(-1, length, isEntries)
    this.#forget()
  }

  #forget(): void {
    const { org, runner, runnerId, loop } = this.#of
    if (runner.queues.size > 0 || runner.load.frames > 0) return
    if (org.runners.get(runnerId) === runner) org.runners.delete(runnerId)
    loop.forget(org)
  }
}
