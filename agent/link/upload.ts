import type { Log } from '@windlass/shared/log.ts'
import type { EntryBatch } from '@windlass/shared/wire/agent.ts'
import type { Held } from '../run/spool/held.ts'
import type { SpoolLine } from '../run/spool/line.ts'
import type { Position } from '../run/spool/segments.ts'
import type { Spool, Written } from '../run/spool/spool.ts'
import type { Link } from './link.ts'
import { openWindow, type Window } from './window.ts'

export interface UploadOptions {
  spool: Spool
  link: Pick<Link, 'isReady' | 'sendEntries' | 'drop'>
  /** Unsent text kept in memory; what is beyond is read back from the spool's files. */
  memoryBytes: number
  log: Log
  /** The coordinator lacks entries that were acknowledged before: it has lost them, and the run cannot be told any more. */
  onGap(held: Held): void
}

/** Sends what the spool holds, in its order: from memory while the connection keeps up, else from the files. */
export interface Upload {
  /** A new connection, or the coordinator asks again: starts over with what is not known to have arrived. */
  rewind(): void
  /** Something may have been acknowledged: what waits for that goes on. */
  settle(): void
  stop(): void
}

const FRAME_CHARS = 512 * 1024
/** Enough for some commits of the coordinator to be under way. */
const WINDOW_CHARS = 4 * 1024 * 1024

type Batch = Extract<SpoolLine, { kind: 'batch' }>

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
    this.#restart(spool.held().every(isSent) ? spool.end() : spool.oldest())
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
    this.#fromFiles(from, this.#turn).catch((error: unknown) => {
      log.error('spool.unreadable', { error })
      link.drop('the spool cannot be read')
    })
  }

  /** Ends when everything is sent that stands in the files; then it is live. */
  async #fromFiles(from: Position, mine: number): Promise<void> {
    const { spool, link } = this.#options
    const goesOn = () => mine === this.#turn && link.isReady
    for (let at = from; goesOn();) {
      const end = spool.end()
      if (at.segment === end.segment && at.offset >= end.offset) {
        this.#isLive = true
        return
      }
      // The window may be full already: one way to here is that memory is.
      await this.#window.room()
      const { lines, next } = await spool.read(at)
      if (!goesOn()) return
      await this.#sendFrame(lines.filter((line) => line.kind === 'batch').flatMap((line) => this.#unsentOf(line)))
      at = next
    }
  }

  #unsentOf(line: Batch): string[] {
    const held = this.#options.spool.find(line.run, line.epoch)
    return held ? this.#unsent(held, line.first, line.last, () => line.json()) : []
  }

  #written(written: readonly Written[]): void {
    if (!this.#isLive) return
    if (!this.#options.link.isReady) {
      this.#isLive = false
      return
    }
    for (const each of written) {
      this.#waiting.push(each)
      this.#waitingChars += each.json.length
    }
    if (this.#waitingChars > this.#options.memoryBytes) return this.#restart(this.#waiting[0]!.at)
    this.#pump()
  }

  #pump(): void {
    while (this.#isLive && !this.#isBlocked && this.#waiting.length > 0) {
      const texts = this.#takeFrame().flatMap((each) => this.#unsent(each.held, each.first, each.last, () => each.json))
      const sending = this.#sendFrame(texts)
      if (sending) void this.#resumeAfter(sending, this.#turn)
    }
  }

  #takeFrame(): Written[] {
    let chars = 0
    let count = 0
    while (count < this.#waiting.length && chars < FRAME_CHARS) chars += this.#waiting[count++]!.json.length
    this.#waitingChars -= chars
    return this.#waiting.splice(0, count)
  }

  async #resumeAfter(sending: Promise<void>, mine: number): Promise<void> {
    this.#isBlocked = true
    await sending
    if (mine !== this.#turn) return
    this.#isBlocked = false
    this.#pump()
  }

  /** A promise when the connection or the coordinator has enough for now. */
  #sendFrame(texts: string[]): Promise<void> | undefined {
    if (texts.length === 0) return undefined
    const sending = this.#options.link.sendEntries(`{"t":"entries","batches":[${texts.join(',')}]}`)
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
    const text = first === sent + 1 ? json() : withoutFirst(json(), sent + 1 - first)
    this.#window.add(held, last, text.length)
    return [text]
  }
}

function isSent(held: Held): boolean {
  return held.sent >= held.written
}

function withoutFirst(json: string, count: number): string {
  const batch = JSON.parse(json) as EntryBatch
  return JSON.stringify({ ...batch, first: batch.first + count, entries: batch.entries.slice(count) })
}
