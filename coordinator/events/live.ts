import type { RunId } from '@windlass/shared/ids.ts'
import { CHANNELS, type Channel } from '@windlass/shared/model/event.ts'
import { isFinal } from '@windlass/shared/model/run.ts'
import type { Log } from '@windlass/shared/log.ts'
import { probe } from '@windlass/shared/probe.ts'
import { pause } from '@windlass/shared/time.ts'
import type { Db } from '../db/client.ts'
import * as store from './store.ts'

/** Readers of one run share its reads: frames are gathered for this long, then one statement serves all of them. */
const GATHER_MS = 5
const PAGE = 500

export interface Reader {
  /** Gets events in order, without gap or double. `done`: the run has finished and this was the last of its log. */
  take(events: readonly store.StoredEvent[], done: boolean): void
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
  /** Readers with the cursor of the last event that each has got. */
  readers: Map<Reader, number>
  rung: boolean
  reading: boolean
  timer: NodeJS.Timeout | undefined
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
    tail.readers.set(reader, since)
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
        await readOnce(tail)
        if (tail.rung) await pause(GATHER_MS)
      }
    } catch (error) {
      log.warn('tail.failed', { runId: tail.run.id, error })
    } finally {
      tail.reading = false
      if (tail.readers.size > 0) tail.timer = setTimeout(() => ring(tail.run.id), lookAgainMs).unref()
    }
  }

  async function readOnce(tail: Tail): Promise<void> {
    const since = Math.min(...tail.readers.values())
    // The status first: when it is final, the log that is read after it is complete.
    const position = await store.position(db, tail.run.orgId, tail.run.id)
    const gone = !position
    const { events } =
      gone || position.cursor <= since
        ? { events: [] }
        : await store.after(db, tail.run.id, { since, channels: CHANNELS, limit: PAGE })
    const last = events.at(-1)?.cursor ?? since
    const done = gone || (isFinal(position.status) && last >= position.cursor)
    if (!done && last < (position?.cursor ?? 0)) tail.rung = true
    for (const [reader, seen] of tail.readers) {
      // Joined while the read was under way, and wants more of the past than was read: the next one is for it.
      if (seen < since) {
        tail.rung = true
        continue
      }
      const fresh = events.filter((event) => event.cursor > seen)
      tail.readers.set(reader, Math.max(seen, last))
      if (fresh.length > 0 || done) reader.take(fresh, done)
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

/** One event as the API shows it. Its data is JSON text already. */
export function eventJson(event: store.StoredEvent): string {
  return `{"cursor":${event.cursor},"at":${event.at},"channel":"${event.channel}","type":${JSON.stringify(event.type)},"data":${event.dataText}}`
}

export function isWanted(channels: readonly Channel[]): (event: store.StoredEvent) => boolean {
  return channels.length === CHANNELS.length ? () => true : (event) => channels.includes(event.channel)
}
