import type { Log } from '@windlass/shared/log.ts'
import { probe } from '@windlass/shared/probe.ts'
import { pause } from '@windlass/shared/time.ts'
import { createSlices } from '../slices.ts'
import { LogPage } from './page.ts'

/** Readers of one log share its reads: frames are gathered for this long, then one statement serves all of them. */
const GATHER_MS = 5
/** What one read brings: events at most, and bytes, after which one event may come on top. */
export const LIVE_PAGE = { limit: 500, bytes: 128 * 1024 } as const
/** Reads at once, of an org and of all. Each holds one of a dozen connections, and an org may have 600 logs read. */
export const READ_SEATS = { org: 2, all: 6 } as const

/** What is written to while it is read: the log of a run, or what happens in an org. */
export interface LiveLog {
  /** By which it is rung, and what its readers have in common. */
  readonly id: string
  readonly orgId: string
  /** What comes after a cursor, or after what is gone, in order: some `LIVE_PAGE` of it. */
  after(since: number): Promise<LogRead>
}

interface LogRead {
  page: LogPage
  /** The cursor of the last event of the log, in this page or not. */
  end: number
  /** Nothing follows upon that. */
  isOver: boolean
  /** Of the events up to this cursor some are gone, which a reader that stands before it can no longer get. */
  goneTo?: number
}

export interface Reader {
  /**
   * Gets what of a page comes after `since`: events in order, without gap or double. `done`: this was the
   * last of the log, or what follows is gone: it has to come back. A reader that answers a promise is full, and gets
   * nothing more before it resolves.
   */
  take(page: LogPage, since: number, done: boolean): Promise<void> | undefined
}

/** Live readers of logs in this process. */
export interface Tails {
  /** Something was committed to this log. Costs a look into a map when nobody reads it. */
  ring(id: string): void
  ringAll(): void
  /** Delivers all events with a cursor above `since`, from now on and until `leave`. */
  follow(log: LiveLog, since: number, reader: Reader): { leave(): void }
  readers(): number
}

/** Where reads of an org wait for their turn. */
interface Seats {
  /** Resolves with what gives the seat back. */
  take(orgId: string): Promise<() => void>
}

interface Tail {
  log: LiveLog
  /** In the order of their waits for a page: the longest stands first. */
  readers: Map<Reader, Progress>
  rung: boolean
  reading: boolean
  timer: NodeJS.Timeout | undefined
}

interface Progress {
  /** Cursor of the last event that the reader has got. */
  seen: number
  /** The reader has not taken what it has got. */
  isFull: boolean
}

/** A lost bell costs latency only: readers look by themselves after `lookAgainMs`. */
export function createTails(log: Log, lookAgainMs: number, seats: Seats): Tails {
  const tails = new Map<string, Tail>()

  function ring(id: string) {
    const tail = tails.get(id)
    if (!tail) return
    tail.rung = true
    if (!tail.reading) void pump(tail)
  }

  function follow(live: LiveLog, since: number, reader: Reader) {
    const { id } = live
    let tail = tails.get(id)
    if (!tail) tails.set(id, (tail = { log: live, readers: new Map(), rung: false, reading: false, timer: undefined }))
    // Joined before the first read: what is committed from here on rings, so nothing falls between backlog and tail.
    tail.readers.set(reader, { seen: since, isFull: false })
    probe('readers.following', { log: id, count: tail.readers.size })
    ring(id)
    return { leave: () => leave(tail, reader) }
  }

  function leave(tail: Tail, reader: Reader) {
    tail.readers.delete(reader)
    probe('readers.following', { log: tail.log.id, count: tail.readers.size })
    if (tail.readers.size > 0) return
    clearTimeout(tail.timer)
    if (tails.get(tail.log.id) === tail) tails.delete(tail.log.id)
  }

  async function pump(tail: Tail): Promise<void> {
    tail.reading = true
    clearTimeout(tail.timer)
    try {
      while (tail.rung && takesMore(tail)) {
        await serve(tail)
        if (tail.rung) await pause(GATHER_MS)
      }
    } catch (error) {
      log.warn('tail.failed', { log: tail.log.id, error })
    } finally {
      tail.reading = false
      if (tail.readers.size > 0) tail.timer = setTimeout(() => ring(tail.log.id), lookAgainMs).unref()
    }
  }

  /** A function of its own, so that no page lies in memory while the tail waits for the next one. */
  async function serve(tail: Tail): Promise<void> {
    const reading = await readInTurn(tail)
    if (reading) await handOut(tail, reading, () => ring(tail.log.id))
  }

  async function readInTurn(tail: Tail): Promise<Reading | undefined> {
    const leaveSeat = await seats.take(tail.log.orgId)
    try {
      // Only now: this read brings what was rung while it waited.
      tail.rung = false
      return await readPage(tail)
    } finally {
      leaveSeat()
    }
  }

  return {
    ring,
    ringAll: () => {
      for (const id of tails.keys()) ring(id)
    },
    follow,
    readers: () => [...tails.values()].reduce((sum, tail) => sum + tail.readers.size, 0),
  }
}

/** What one read has brought: a page with what lies between these cursors. */
interface Reading extends LogRead {
  since: number
  last: number
}

/** Reads a page for the reader that has waited longest. Undefined: none takes more now. */
async function readPage({ log, readers }: Tail): Promise<Reading | undefined> {
  const first = firstBehind(readers)
  if (first === undefined) return undefined
  let since = first
  let read = await log.after(since)
  // It has got everything. Another one may stand further back.
  const next = first < read.end ? undefined : firstBehind(readers, read.end)
  if (next !== undefined) read = await log.after((since = next))
  since = Math.max(since, read.goneTo ?? 0)
  return { ...read, since, last: read.page.events.at(-1)?.cursor ?? read.end }
}

/** False when all are full, or gone. */
const takesMore = ({ readers }: Tail): boolean => firstBehind(readers) !== undefined

const NOTHING = new LogPage([])

/** Gives a page to all who stand within it. */
async function handOut(tail: Tail, reading: Reading, ring: () => void): Promise<void> {
  const { page, since, last, end, isOver, goneTo = 0 } = reading
  const slice = createSlices(tail.log.orgId)
  for (const [reader, progress] of Array.from(tail.readers)) {
    const { seen, isFull } = progress
    if (isFull || !tail.readers.has(reader)) continue
    if (seen < goneTo) {
      // Whatever came now, it would not know what it has missed. As it comes back, it is told.
      progress.isFull = true
      void reader.take(NOTHING, seen, true)
      await slice()
      continue
    }
    const isWithin = seen >= since && seen < last
    if (isWithin) progress.seen = last
    const done = isOver && progress.seen >= end
    if (isWithin || done) {
      // It stands behind those now who wait for other pages.
      tail.readers.delete(reader)
      tail.readers.set(reader, progress)
      const taken = reader.take(page, seen, done)
      if (taken) void fill(progress, taken, ring)
    }
    if (progress.seen < end && !progress.isFull) tail.rung = true
    // So many readers would keep everybody else waiting.
    await slice()
  }
}

async function fill(progress: Progress, taken: Promise<void>, ring: () => void): Promise<void> {
  progress.isFull = true
  await taken
  progress.isFull = false
  ring()
}

/** Where the reader stands that has waited longest; undefined when nobody who takes more stands before `end`. */
function firstBehind(readers: Tail['readers'], end = Number.POSITIVE_INFINITY): number | undefined {
  for (const { seen, isFull } of readers.values()) if (!isFull && seen < end) return seen
  return undefined
}
