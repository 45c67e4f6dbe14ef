import type { Log } from '@windlass/shared/log.ts'
import type { Held, Written } from '../run/spool/held.ts'
import { isBefore, type Position } from '../run/spool/position.ts'
import type { ReadLine } from '../run/spool/segments.ts'
import type { Spool } from '../run/spool/spool.ts'
import { FRAME_CHARS, inFrames, withoutFirst } from './batches.ts'
import type { Link } from './link.ts'
import { openWindow, type Window } from './window.ts'

export interface UploadOptions {
  spool: Spool
  link: Pick<Link, 'isReady' | 'frameChars' | 'sendEntries' | 'drop'>
  /** Unsent text kept in memory; what is beyond is read back from the spool's files. */
  memoryBytes: number
  log: Log
  /** Entries that the coordinator lacks are gone, here or after it had acknowledged them: the run cannot be told any more. */
  onGap(held: Held): void
}

/**
 * Sends what the spool holds: from memory while the connection keeps up, else from the files. What one placement says
 * keeps its order; what others say does not stand behind all that a talkative one has said.
 */
export interface Upload {
  /** A new connection, or the coordinator asks again: starts over with what is not known to have arrived. */
  rewind(): void
  /** Something may have been acknowledged: what waits for that goes on. */
  settle(): void
  stop(): void
}

/** Enough for some commits of the coordinator to be under way. */
const WINDOW_CHARS = 4 * 1024 * 1024
/** What an entry costs the coordinator, however short it is: of empty lines some 20,000 are under way, for 0.4 s. */
const ENTRY_CHARS = 128
/** A placement with so many more entries to send than it has sent is sent behind the others. */
const TALKATIVE_ENTRIES = 8_192

type Batch = Extract<ReadLine, { kind: 'batch' }>

export function createUpload(options: UploadOptions): Upload {
  return new SpoolUpload(options)
}

/** Live, it sends what is written as it is written; else it reads the files until it has caught up. */
class SpoolUpload implements Upload {
  readonly #options: UploadOptions
  readonly #window: Window
  /** Written, not sent, and next in order; only while it is live. */
  #waiting: Written[] = []
  #waitingChars = 0
  /** When each was sent last, in turns. */
  readonly #servedAt = new WeakMap<Held, number>()
  #served = 0
  /** They are read from the files while others are live, and how far they have been. */
  #talkative: { of: ReadonlySet<Held>; at: Position } | undefined
  #isLive = false
  #isBlocked = false
  /** Raised by each rewind, so that what was under way before it ends. */
  #turn = 0

  constructor(options: UploadOptions) {
    const { spool } = options
    this.#options = options
    this.#window = openWindow(WINDOW_CHARS, (held) => spool.find(held.run, held.epoch) === held)
    spool.onWritten((written) => this.#written(written))
  }

  rewind(): void {
    const { spool } = this.#options
    this.#window.clear()
    this.#restart(spool.held().every(isSent) ? spool.reader.end() : spool.reader.oldest())
  }

  settle(): void {
    this.#window.settle()
  }

  stop(): void {
    this.#turn += 1
    this.#isLive = false
    this.#window.clear()
  }

  #restart(from: Position): void {
    const { link, log } = this.#options
    this.#turn += 1
    this.#waiting = []
    this.#waitingChars = 0
    this.#isLive = this.#isBlocked = false
    const begin = this.#talkative ? earlier(this.#talkative.at, from) : from
    this.#talkative = undefined
    this.#fromFiles(begin, this.#turn).catch((error: unknown) => {
      log.error('spool.unreadable', { error })
      link.drop('the spool cannot be read')
    })
  }

  /** Ends when everything is sent that stands in the files. It is live before that for all but the talkative. */
  async #fromFiles(from: Position, mine: number): Promise<void> {
    const talkative = new Set(this.#options.spool.held().filter(isTalkative))
    await this.#sendFiles(from, mine, {
      isMeant: (held) => !talkative.has(held),
      onEnd: () => {
        if (talkative.size > 0) this.#talkative = { of: talkative, at: from }
        this.#isLive = true
      },
    })
    if (talkative.size === 0) return
    await this.#sendFiles(from, mine, {
      isMeant: (held) => talkative.has(held),
      onEnd: () => (this.#talkative = undefined),
      onPiece: (at) => (this.#talkative = { of: talkative, at }),
    })
  }

  async #sendFiles(from: Position, mine: number, { isMeant, onEnd, onPiece }: Reading): Promise<void> {
    const { spool, link } = this.#options
    const goesOn = () => mine === this.#turn && link.isReady
    for (let at = from; goesOn();) {
      const end = spool.reader.end()
      if (at.segment === end.segment && at.offset >= end.offset) return this.#atEnd(isMeant, onEnd)
      // The window may be full already: one way to here is that memory is.
      await this.#window.room()
      const { lines, next } = await spool.reader.read(at)
      if (!goesOn()) return
      const batches = lines.filter((line) => line.kind === 'batch')
      const { segment } = at
      await this.#send(batches.flatMap((line) => this.#unsentOf(line, segment, isMeant)))
      if (!goesOn()) return
      at = next
      onPiece?.(at)
    }
  }

  /**
   * All that was written by now has been read: what is not sent stands in no file any more. Where nothing follows it,
   * no later batch would show that.
   */
  #atEnd(isMeant: Reading['isMeant'], onEnd: () => void): void {
    const { spool } = this.#options
    const missing = spool.held().filter((held) => isMeant(held) && !isSent(held))
    // First, as what is said of the missing is to be sent too.
    onEnd()
    for (const held of missing) if (spool.find(held.run, held.epoch) === held) this.#options.onGap(held)
  }

  #unsentOf(line: Batch, segment: number, isMeant: Reading['isMeant']): string[] {
    const held = this.#options.spool.find(line.run, line.epoch)
    if (!held || isBefore({ segment, offset: line.offset }, held.from)) return []
    return isMeant(held) ? this.#unsent(held, line.first, line.last, () => line.json()) : []
  }

  #written(written: readonly Written[]): void {
    if (!this.#isLive) return
    if (!this.#options.link.isReady) {
      this.#isLive = false
      return
    }
    for (const each of written) {
      if (this.#talkative?.of.has(each.held)) continue
      this.#waiting.push(each)
      this.#waitingChars += each.json.length
    }
    if (this.#waitingChars > this.#options.memoryBytes) return this.#restart(this.#waiting[0]!.at)
    this.#pump()
  }

  #pump(): void {
    while (this.#isLive && !this.#isBlocked && this.#waiting.length > 0) {
      const texts = this.#takeFrame().flatMap((each) => this.#unsent(each.held, each.first, each.last, () => each.json))
      const sending = this.#send(texts)
      if (sending) void this.#resumeAfter(sending, this.#turn)
    }
  }

  /** In turns: of each placement what it has said first, beginning with whom was sent nothing for the longest time. */
  #takeFrame(): Written[] {
    const byHeld = Map.groupBy(this.#waiting, ({ held }) => held)
    const inTurn = [...byHeld.keys()].toSorted((a, b) => this.#lastServed(a) - this.#lastServed(b))
    const taken = new Set<Written>()
    const most = this.#frameChars()
    let chars = 0
    for (const held of inTurn) {
      let own = 0
      for (const each of byHeld.get(held)!) {
        if (chars >= most || own >= most / inTurn.length) break
        taken.add(each)
        chars += each.json.length
        own += each.json.length
      }
      if (own > 0) this.#servedAt.set(held, (this.#served += 1))
    }
    this.#waitingChars -= chars
    this.#waiting = this.#waiting.filter((each) => !taken.has(each))
    return [...taken]
  }

  #frameChars(): number {
    return Math.min(FRAME_CHARS, this.#options.link.frameChars)
  }

  #lastServed(held: Held): number {
    return this.#servedAt.get(held) ?? 0
  }

  async #resumeAfter(sending: Promise<void>, mine: number): Promise<void> {
    this.#isBlocked = true
    await sending
    if (mine !== this.#turn) return
    this.#isBlocked = false
    this.#pump()
  }

  /**
   * A promise when the connection or the coordinator has enough for now. Over a slow line it is several frames: each is
   * acknowledged by itself, and stays so when the connection ends in the next.
   */
  #send(texts: string[]): Promise<void> | undefined {
    if (texts.length === 0) return undefined
    let sending: Promise<void> | undefined
    for (const batches of inFrames(texts, this.#frameChars()))
      sending = this.#options.link.sendEntries(`{"t":"entries","batches":[${batches.join(',')}]}`)
    const room = this.#window.room()
    return sending && room ? Promise.all([sending, room]).then(() => undefined) : (sending ?? room)
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
    this.#window.add(held, last, text.length + (last - sent) * ENTRY_CHARS)
    return [text]
  }
}

/** One walk through the files: whose lines it sends, and what is heard of it. */
interface Reading {
  isMeant: (held: Held) => boolean
  /** Where the files end: what is written from now on is not read any more. */
  onEnd: () => void
  onPiece?: (next: Position) => void
}

function earlier(one: Position, other: Position): Position {
  return isBefore(one, other) ? one : other
}

function isTalkative({ written, sent }: Held): boolean {
  return written - sent > TALKATIVE_ENTRIES
}

function isSent(held: Held): boolean {
  return held.sent >= held.written
}
