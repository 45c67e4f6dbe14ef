import type { Log } from '@windlass/shared/log.ts'
import { pause } from '@windlass/shared/time.ts'
import { isSent, nextFile, unsentBytes, type Held, type Written } from '../run/spool/held.ts'
import { isBefore, later, type Position } from '../run/spool/position.ts'
import type { ReadLine } from '../run/spool/segments.ts'
import type { Spool } from '../run/spool/spool.ts'
import { FRAME_CHARS, inFrames, withoutFirst } from './batches.ts'
import type { Link } from './link.ts'
import { type Turn, turnOf, Turns, Waiting } from './waiting.ts'
import { costOf, openWindow, type Window } from './window.ts'

export interface UploadOptions {
  spool: Spool
  link: Pick<Link, 'isReady' | 'frameChars' | 'sendEntries' | 'drop'>
  /** Unsent text kept in memory; what is beyond is read back from the spool's files. */
  memoryBytes: number
  log: Log
  /** Smaller ones let a test meet with little what takes much in earnest. */
  sizes?: Partial<typeof SIZES>
  /** Entries that the coordinator lacks are gone, here or after it had acknowledged them: the run cannot be told any more. */
  onGap(held: Held): void
}

/**
 * Sends what the spool holds: from memory while the connection keeps up with a placement, else from the files. What one
 * placement says keeps its order; what others say does not stand behind all that a talkative one has said.
 */
export interface Upload {
  /** A new connection, or the coordinator asks again: starts over with what is not known to have arrived. */
  rewind(): void
  /** Something may have been acknowledged: what waits for that goes on. */
  settle(): void
  stop(): void
}

const SIZES = {
  /** Enough for some commits of the coordinator to be under way: some 0.3 s of it. One placement has half of it. */
  windowChars: 4 * 1024 * 1024,
  /** A placement with more entries to send, or with more characters than the window takes, is talkative. */
  talkativeEntries: 8_192,
}
/** A file that cannot be read is tried again after so long, or sooner where there is nothing else to read. */
const UNREADABLE_MS = 5_000
const RETRY_MS = 500

/** In which talkative placements take turns: each is read once for each of them that comes through it. */
const MOST_FILES = 4

type Batch = Extract<ReadLine, { kind: 'batch' }>

export function createUpload(options: UploadOptions): Upload {
  return new SpoolUpload(options)
}

/** Of most placements it sends what is written as it is written; of those that are behind it reads the files. */
class SpoolUpload implements Upload {
  readonly #options: UploadOptions
  readonly #sizes: typeof SIZES
  readonly #window: Window
  readonly #turns = new Turns()
  /** Next in order, and of none that is behind. */
  readonly #waiting = new Waiting(this.#turns)
  /** These are read from the files. What is not sent of one stands nowhere before the place. */
  readonly #behind = new Map<Held, Position>()
  #isLive = false
  #isBlocked = false
  #isReading = false
  /** The next turn is one of the talkative, where both kinds are behind. */
  #isForTalkative = false
  /** The files that could not be read, and when each was tried last. */
  readonly #unreadable = new Map<number, number>()
  /** Raised by each rewind, so that what was under way before it ends. */
  #turn = 0

  constructor(options: UploadOptions) {
    const { spool } = options
    this.#options = options
    this.#sizes = { ...SIZES, ...options.sizes }
    this.#window = openWindow(this.#sizes.windowChars, (held) => spool.find(held.run, held.epoch) === held)
    spool.onWritten((written) => this.#written(written))
  }

  rewind(): void {
    const { spool } = this.#options
    this.#halt()
    // What others have under way is answered yet, where it is the coordinator that asks for one of them.
    this.#window.takeBack()
    this.#isLive = true
    for (const held of spool.held()) if (!isSent(held)) this.#behind.set(held, this.#unsentFrom(held))
    this.#readOn()
  }

  settle(): void {
    if (this.#window.settle()) this.#pump()
  }

  stop(): void {
    this.#halt()
    this.#window.clear()
  }

  #halt(): void {
    this.#turn += 1
    this.#isLive = this.#isBlocked = this.#isReading = false
    this.#waiting.clear()
    this.#behind.clear()
  }

  #unsentFrom(held: Held): Position {
    const segment = nextFile(held)
    // Whatever stands before its beginning, perhaps in a file that cannot be read, is of others.
    return segment === undefined ? later(this.#options.spool.reader.oldest(), held.from) : { segment, offset: 0 }
  }

  #readOn(): void {
    if (this.#isReading) return
    const { link, log } = this.#options
    this.#isReading = true
    this.#readBehind(this.#turn).catch((error: unknown) => {
      log.error('spool.unreadable', { error })
      link.drop('the spool cannot be read')
    })
  }

  /** Ends when nobody is behind any more. */
  async #readBehind(mine: number): Promise<void> {
    const { spool, link } = this.#options
    const goesOn = () => mine === this.#turn && link.isReady
    // The caller goes on first.
    await Promise.resolve()
    while (goesOn()) {
      this.#leaveOutCaughtUp()
      if (this.#behind.size === 0) break
      const turn = this.#nextTurn()
      if (!turn) {
        await this.#window.change()
        continue
      }
      const chunk = await spool.reader.read(turn.at)
      if (!goesOn()) break
      if (!isBefore(turn.at, chunk.next)) {
        await this.#leaveOut(turn.at.segment)
        continue
      }
      this.#unreadable.delete(turn.at.segment)
      const batches = chunk.lines.filter((line) => line.kind === 'batch')
      const stopped = new Map<Held, Position>()
      const texts = batches.flatMap((line) => this.#unsentOf(line, turn, stopped))
      // What stands there may be of others alone: that was no turn.
      if (texts.length > 0) this.#isForTalkative = !this.#isForTalkative
      const sending = this.#send(texts)
      for (const held of turn.of) this.#advance(held, stopped.get(held) ?? chunk.next)
      await sending
    }
    if (mine === this.#turn) this.#isReading = false
  }

  /** What they write from now on is sent as it is written. */
  #leaveOutCaughtUp(): void {
    const { spool } = this.#options
    for (const [held, at] of this.#behind) {
      const isKnown = spool.find(held.run, held.epoch) === held
      // Its file has been read, or all that was written by now: what is not sent stands in no file any more. Where
      // nothing follows it, or what does cannot be read, no later batch would show that.
      const isRead = at.segment > (nextFile(held) ?? Infinity) || !isBefore(at, spool.reader.end())
      const isMissing = isKnown && !isSent(held) && isRead
      if (!isKnown || isSent(held) || isMissing) this.#behind.delete(held)
      if (isMissing) this.#options.onGap(held)
    }
  }

  /**
   * Those that have little to send and the talkative take turns. The former go through the files together, in the
   * order of writing: after an outage there may be hundreds of them, and a file is not read once for each. So may the
   * talkative: those that are in the same file go together, and the oldest few files take turns. The others wait until
   * one of these is where they are. Those without room wait until some of theirs is acknowledged; undefined: all do.
   */
  #nextTurn(): Turn | undefined {
    const behind = this.#behindWithRoom()
    const readable = behind.filter(([, at]) => !this.#isLeftOut(at.segment))
    const kinds = Map.groupBy(readable.length > 0 ? readable : behind, ([held]) => this.#isTalkative(held))
    const quiet = kinds.get(false)
    const talkative = kinds.get(true)
    if (quiet && !(talkative && this.#isForTalkative)) return turnOf(quiet)
    if (!talkative) return undefined
    const files = Map.groupBy(talkative, ([, at]) => at.segment)
    const oldest = [...files].toSorted(([one], [other]) => one - other).slice(0, MOST_FILES)
    const lastOf = (together: typeof behind) => Math.min(...together.map(([held]) => this.#turns.last(held)))
    return turnOf(oldest.map(([, of]) => of).reduce((one, other) => (lastOf(other) < lastOf(one) ? other : one)))
  }

  #behindWithRoom(): [Held, Position][] {
    return [...this.#behind].filter(([held]) => this.#window.room(held) > 0)
  }

  #isTalkative(held: Held): boolean {
    const { windowChars, talkativeEntries } = this.#sizes
    return held.written - held.sent > talkativeEntries || unsentBytes(held) > windowChars
  }

  async #leaveOut(segment: number): Promise<void> {
    this.#unreadable.set(segment, performance.now())
    if (this.#behindWithRoom().every(([, at]) => this.#isLeftOut(at.segment))) await pause(RETRY_MS)
  }

  #isLeftOut(segment: number): boolean {
    return performance.now() - (this.#unreadable.get(segment) ?? -Infinity) < UNREADABLE_MS
  }

  /** `stopped`: who has no room for what follows, and where that stands. */
  #unsentOf(line: Batch, { at, of }: Turn, stopped: Map<Held, Position>): string[] {
    const held = this.#options.spool.find(line.run, line.epoch)
    const position = { segment: at.segment, offset: line.offset }
    if (!held || !of.has(held) || isBefore(position, held.from) || stopped.has(held)) return []
    if (line.last > held.sent && this.#window.room(held) <= 0) {
      stopped.set(held, position)
      return []
    }
    const texts = this.#unsent(held, line.first, line.last, () => line.json())
    if (texts.length > 0) this.#turns.serves(held)
    return texts
  }

  /** All of it is read that stands before `next`. */
  #advance(held: Held, next: Position): void {
    this.#behind.set(held, later(this.#behind.get(held)!, later(next, this.#unsentFrom(held))))
  }

  #written(written: readonly Written[]): void {
    if (!this.#isLive) return
    if (!this.#options.link.isReady) {
      this.#isLive = false
      return
    }
    for (const each of written) if (!this.#behind.has(each.held)) this.#waiting.add(each)
    if (this.#waiting.chars > this.#options.memoryBytes) this.#makeRoom()
    this.#pump()
  }

  /** Half of the memory, or it would be full again at once. */
  #makeRoom(): void {
    const loudest = this.#waiting.takeLoudest(this.#options.memoryBytes / 2)
    for (const [held, at] of loudest) this.#behind.set(held, at)
    this.#window.wake()
    this.#readOn()
  }

  #pump(): void {
    while (this.#isLive && !this.#isBlocked) {
      const written = this.#waiting.takeFrame(this.#frameChars(), (held) => this.#window.room(held))
      if (written.length === 0) return
      const texts = written.flatMap((each) => this.#unsent(each.held, each.first, each.last, () => each.json))
      const sending = this.#send(texts)
      if (sending) void this.#resumeAfter(sending, this.#turn)
    }
  }

  #frameChars(): number {
    return Math.min(FRAME_CHARS, this.#options.link.frameChars)
  }

  async #resumeAfter(sending: Promise<void>, mine: number): Promise<void> {
    this.#isBlocked = true
    await sending
    if (mine !== this.#turn) return
    this.#isBlocked = false
    this.#pump()
  }

  /**
   * A promise when the connection has enough for now. Over a slow line it is several frames: each is acknowledged by
   * itself, and stays so when the connection ends in the next.
   */
  #send(texts: string[]): Promise<void> | undefined {
    if (texts.length === 0) return undefined
    let sending: Promise<void> | undefined
    for (const batches of inFrames(texts, this.#frameChars()))
      sending = this.#options.link.sendEntries(`{"t":"entries","batches":[${batches.join(',')}]}`)
    return sending
  }

  /** The text of what the coordinator does not have of these entries: all, some, or none. */
  #unsent(held: Held, first: number, last: number, json: () => string): string[] {
    if (this.#options.spool.find(held.run, held.epoch) !== held) return []
    const { sent } = held
    if (last <= sent) return []
    if (first > sent + 1) {
      this.#options.onGap(held)
      return []
    }
    held.sent = last
    held.everSent = Math.max(held.everSent, last)
    const text = first === sent + 1 ? json() : withoutFirst(json(), sent + 1 - first)
    this.#window.add(held, last, costOf(last - sent, text.length))
    return [text]
  }
}
