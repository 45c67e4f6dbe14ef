import type { RunId } from '@windlass/shared/ids.ts'
import { CHANNELS } from '@windlass/shared/model/event.ts'
import { isFinal } from '@windlass/shared/model/run.ts'
import type { Log } from '@windlass/shared/log.ts'
import { probe } from '@windlass/shared/probe.ts'
import { pause } from '@windlass/shared/time.ts'
import type { Db } from '../db/client.ts'
import { createSlices } from '../slices.ts'
import { LogPage } from './page.ts'
import * as store from './store.ts'

/** Readers of one run share its reads: frames are gathered for this long, then one statement serves all of them. */
const GATHER_MS = 5
const PAGE = 500
/** What one read brings, and so what lies here for a reader that takes nothing; one event may come on top. */
const PAGE_BYTES = 128 * 1024

export interface Reader {
  /**
   * Gets what of a page comes after `since`: events in order, without gap or double. `done`: the run has finished, and
   * this was the last of its log. A reader that answers a promise is full, and gets nothing more before it resolves.
   */
  take(page: LogPage, since: number, done: boolean): Promise<void> | undefined
}

/** Live readers of run logs in this process. */
export interface Tails {
  /** Something was committed to this run's log. Costs a look into a map when nobody reads it. */
  ring(runId: string): void
  ringAll(): void
  /** Delivers all events with a cursor above `since`, from now on and until `leave`. */
  follow(run: { id: RunId; orgId: string }, since: number, reader: Reader): { leave(): void }
  readers(): number
}

interface Tail {
  run: { id: RunId; orgId: string }
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
export function createTails(db: Db, log: Log, lookAgainMs: number): Tails {
  const tails = new Map<string, Tail>()

  function ring(runId: string) {
    const tail = tails.get(runId)
    if (!tail) return
    tail.rung = true
    if (!tail.reading) void pump(tail)
  }

  function follow(run: Tail['run'], since: number, reader: Reader) {
    let tail = tails.get(run.id)
    if (!tail) tails.set(run.id, (tail = { run, readers: new Map(), rung: false, reading: false, timer: undefined }))
    // Joined before the first read: what is committed from here on rings, so nothing falls between backlog and tail.
    tail.readers.set(reader, { seen: since, isFull: false })
    probe('readers.following', { run: run.id, count: tail.readers.size })
    ring(run.id)
    return { leave: () => leave(tail, reader) }
  }

  function leave(tail: Tail, reader: Reader) {
    tail.readers.delete(reader)
    probe('readers.following', { run: tail.run.id, count: tail.readers.size })
    if (tail.readers.size > 0) return
    clearTimeout(tail.timer)
    if (tails.get(tail.run.id) === tail) tails.delete(tail.run.id)
  }

  async function pump(tail: Tail): Promise<void> {
    tail.reading = true
    clearTimeout(tail.timer)
    try {
      while (tail.rung && tail.readers.size > 0) {
        tail.rung = false
        const reading = await readPage(db, tail)
        if (reading) await handOut(tail, reading, () => ring(tail.run.id))
        if (tail.rung) await pause(GATHER_MS)
      }
    } catch (error) {
      log.warn('tail.failed', { runId: tail.run.id, error })
    } finally {
      tail.reading = false
      if (tail.readers.size > 0) tail.timer = setTimeout(() => ring(tail.run.id), lookAgainMs).unref()
    }
  }

  return {
    ring,
    ringAll: () => {
      for (const runId of tails.keys()) ring(runId)
    },
    follow,
    readers: () => [...tails.values()].reduce((sum, tail) => sum + tail.readers.size, 0),
  }
}

/** What one read has brought. */
interface Reading {
  page: LogPage
  /** The page has what lies between these cursors; undefined: nobody lacks anything. */
  since: number | undefined
  last: number
  /** Last cursor of the log. */
  end: number
  /** Nothing comes after that. */
  isOver: boolean
}

/** Reads a page for the reader that has waited longest. Undefined: none takes more now. */
async function readPage(db: Db, tail: Tail): Promise<Reading | undefined> {
  if (Array.from(tail.readers.values()).every(({ isFull }) => isFull)) return undefined
  // The status first: when it is final, the log that is read after it is complete.
  const position = await store.position(db, tail.run.orgId, tail.run.id)
  const end = position?.cursor ?? 0
  const isOver = !position || isFinal(position.status)
  const since = firstBehind(tail, end)
  if (since === undefined) return { page: new LogPage([]), since, last: end, end, isOver }
  const ask = { since, channels: CHANNELS, limit: PAGE, bytes: PAGE_BYTES }
  const { events } = await store.after(db, tail.run.id, ask)
  return { page: new LogPage(events), since, last: events.at(-1)?.cursor ?? end, end, isOver }
}

/** Gives a page to all who stand within it. */
async function handOut(tail: Tail, reading: Reading, ring: () => void): Promise<void> {
  const { page, since, last, end, isOver } = reading
  const slice = createSlices()
  for (const [reader, progress] of Array.from(tail.readers)) {
    const { seen, isFull } = progress
    if (isFull || !tail.readers.has(reader)) continue
    const isWithin = since !== undefined && seen >= since && seen < last
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

/** Where the reader stands that has waited longest; undefined when nobody who takes more has less than there is. */
function firstBehind({ readers }: Tail, end: number): number | undefined {
  for (const { seen, isFull } of readers.values()) if (!isFull && seen < end) return seen
  return undefined
}
