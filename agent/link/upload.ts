import type { Log } from '@windlass/shared/log.ts'
import type { EntryBatch } from '@windlass/shared/wire/agent.ts'
import type { Held } from '../run/spool/held.ts'
import type { SpoolLine } from '../run/spool/line.ts'
import type { Position } from '../run/spool/segments.ts'
import type { Spool, Written } from '../run/spool/spool.ts'
import type { Link } from './link.ts'
import { openWindow } from './window.ts'

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
  const { spool, link, log } = options
  const window = openWindow(WINDOW_CHARS, (held) => spool.find(held.run, held.epoch) === held)
  /** Written, not sent, and next in order; only while `isLive`. */
  let waiting: Written[] = []
  let waitingChars = 0
  let isLive = false
  let isBlocked = false
  /** Raised by each rewind, so that what was under way before it ends. */
  let turn = 0

  const canSend = () => isLive && !isBlocked && waiting.length > 0

  const pump = () => {
    while (canSend()) {
      const texts = takeFrame().flatMap((each) => unsent(each.held, each.first, each.last, () => each.json))
      block(sendFrame(texts))
    }
  }

  const takeFrame = (): Written[] => {
    let chars = 0
    let count = 0
    while (count < waiting.length && chars < FRAME_CHARS) chars += waiting[count++]!.json.length
    waitingChars -= chars
    return waiting.splice(0, count)
  }

  const block = (sending: Promise<void> | undefined) => {
    if (sending) void resumeAfter(sending, turn)
  }

  const resumeAfter = async (sending: Promise<void>, mine: number) => {
    isBlocked = true
    await sending
    if (mine !== turn) return
    isBlocked = false
    pump()
  }

  /** A promise when the connection or the coordinator has enough for now. */
  const sendFrame = (texts: string[]): Promise<void> | undefined => {
    if (texts.length === 0) return undefined
    const sending = link.sendEntries(`{"t":"entries","batches":[${texts.join(',')}]}`)
    const room = window.room()
    return sending && room ? Promise.all([sending, room]).then(() => undefined) : (sending ?? room)
  }

  /** The text of what the coordinator does not have of these entries: all, some, or none. */
  const unsent = (held: Held, first: number, last: number, json: () => string): string[] => {
    if (spool.find(held.run, held.epoch) !== held) return []
    const { sent } = held
    if (last <= sent) return []
    if (first > sent + 1) {
      options.onGap(held)
      return []
    }
    held.sent = last
    const text = first === sent + 1 ? json() : withoutFirst(json(), sent + 1 - first)
    window.add(held, last, text.length)
    return [text]
  }

  const fromFiles = async (from: Position, mine: number) => {
    const goesOn = () => mine === turn && link.isReady
    for (let at = from; goesOn();) {
      const end = spool.end()
      if (at.segment === end.segment && at.offset >= end.offset) {
        isLive = true
        return
      }
      const { lines, next } = await spool.read(at)
      if (!goesOn()) return
      await sendFrame(lines.filter((line) => line.kind === 'batch').flatMap(unsentOf))
      at = next
    }
  }

  const unsentOf = (line: Batch): string[] => {
    const held = spool.find(line.run, line.epoch)
    return held ? unsent(held, line.first, line.last, () => line.json()) : []
  }

  const restart = (from: Position) => {
    turn += 1
    waiting = []
    waitingChars = 0
    isLive = isBlocked = false
    fromFiles(from, turn).catch((error: unknown) => {
      log.error('spool.unreadable', { error })
      link.drop('the spool cannot be read')
    })
  }

  spool.onWritten((written) => {
    if (!isLive) return
    if (!link.isReady) {
      isLive = false
      return
    }
    for (const each of written) {
      waiting.push(each)
      waitingChars += each.json.length
    }
    if (waitingChars > options.memoryBytes) return restart(waiting[0]!.at)
    pump()
  })

  return {
    rewind() {
      window.clear()
      restart(spool.held().every(isSent) ? spool.end() : spool.oldest())
    },
    settle: () => window.settle(),
    stop() {
      turn += 1
      isLive = false
      window.clear()
    },
  }
}

function isSent(held: Held): boolean {
  return held.sent >= held.written
}

function withoutFirst(json: string, count: number): string {
  const batch = JSON.parse(json) as EntryBatch
  return JSON.stringify({ ...batch, first: batch.first + count, entries: batch.entries.slice(count) })
}
