import type { Log } from '@windlass/shared/log.ts'
import type { Entry, Placement } from '@windlass/shared/wire/agent.ts'
import { addWritten, keyOf, newHeld, placementOf, takeAcked } from './spool-held.ts'
import type { Held } from './spool-held.ts'
import { batchLine, forgetLine, openLine } from './spool-line.ts'
import { recoverSpool } from './spool-recover.ts'
import { openSegments } from './spool-segments.ts'
import type { Chunk, Position } from './spool-segments.ts'
import { createThrottle } from './spool-throttle.ts'

export interface SpoolOptions {
  folder: string
  /** A run with so many unacknowledged characters is paused; `totalBytes` is the same for all runs together. */
  runBytes: number
  totalBytes: number
  log: Log
}

/** Entries that have just been written, with the text that goes over the wire. */
export interface Written {
  held: Held
  first: number
  last: number
  json: string
  at: Position
}

/** The write-ahead log of everything that runs report: on disk before it is sent, kept until it is acknowledged. */
export interface Spool {
  /** Written before the offers are accepted: an agent that dies afterwards knows at its next start what it had taken. */
  open(placements: readonly Placement[]): void
  /** A promise when the caller should hold its program back until it settles. Entries of unknown placements are dropped. */
  append(run: string, epoch: number, entries: readonly Entry[]): Promise<void> | undefined
  ack(run: string, epoch: number, seq: number): void
  forget(run: string, epoch: number): void
  find(run: string, epoch: number): Held | undefined
  /** Every placement with something unacknowledged, or in execution. */
  held(): Held[]
  holds(): Placement[]
  /** Told about each write, in order. */
  onWritten(listener: (written: Written[]) => void): void
  read(from: Position): Promise<Chunk>
  oldest(): Position
  end(): Position
  /** Writes what is gathered now. */
  flush(): void
  close(): void
}

/** How long entries gather at most while others were written just before. */
const GATHER_MS = 2
const GATHER_CHARS = 256 * 1024
const RETRY_MS = 500

export async function openSpool(options: SpoolOptions): Promise<Spool> {
  const { log } = options
  const known = new Map<string, Held>()
  /** How many placements still need each file. */
  const needs = new Map<number, number>()
  const segments = openSegments(options.folder, () => [...known.values()].map(headOf).join(''))
  await recoverSpool(segments, known, needs, log)

  const throttle = createThrottle(options)
  const dirty = new Set<Held>()
  let gatheredChars = 0
  let forgotten = ''
  let listener: (written: Written[]) => void = () => undefined
  let timer: NodeJS.Timeout | undefined
  let immediate: NodeJS.Immediate | undefined
  let flushedAt = -Infinity

  const flush = () => {
    clearTimeout(timer)
    clearImmediate(immediate)
    timer = immediate = undefined
    if (dirty.size === 0 && forgotten === '') return
    const written = [...dirty].map(gatheredOf)
    let at: Position
    try {
      at = segments.append(forgotten + written.map((each) => each.line).join(''))
    } catch (error) {
      return waitForDisk(error)
    }
    if (throttle.diskWorks()) log('spool.disk.works')
    flushedAt = performance.now()
    forgotten = ''
    gatheredChars = 0
    dirty.clear()
    for (const { held, last, chars } of written) {
      held.gathered = []
      if (held.parts.at(-1)?.segment !== at.segment) needs.set(at.segment, (needs.get(at.segment) ?? 0) + 1)
      addWritten(held, last, chars, at.segment)
    }
    listener(written.map((each) => ({ ...each, at })))
  }

  /** Programs are held back and nothing is lost meanwhile: what is gathered stays in memory. */
  const waitForDisk = (error: unknown) => {
    if (throttle.diskRefuses()) log.error('spool.disk.refuses', { folder: options.folder, error })
    timer = setTimeout(flush, RETRY_MS)
  }

  const flushSoon = (isUrgent: boolean) => {
    if (throttle.isDiskRefusing() || immediate) return
    if (isUrgent || performance.now() - flushedAt >= GATHER_MS) immediate = setImmediate(flush)
    else timer ??= setTimeout(flush, GATHER_MS)
  }

  const sweep = () => {
    const end = segments.end().segment
    let oldest = segments.oldest().segment
    // In order only: a later file says which placements of an earlier one are over.
    while (oldest < end && (needs.get(oldest) ?? 0) === 0) needs.delete(oldest++)
    segments.dropBefore(oldest)
  }

  const settle = (freed: readonly number[]) => {
    for (const segment of freed) needs.set(segment, (needs.get(segment) ?? 1) - 1)
    if (freed.length > 0 && segments.oldest().segment < segments.end().segment) sweep()
  }

  const forget = (held: Held) => {
    known.delete(keyOf(held.run, held.epoch))
    dirty.delete(held)
    held.gathered = []
    forgotten += forgetLine(held.run, held.epoch)
    throttle.drop(held)
    settle(held.parts.splice(0).map((part) => part.segment))
  }

  const find = (run: string, epoch: number) => known.get(keyOf(run, epoch))

  return {
    open(placements) {
      const fresh = placements.filter(([run, epoch]) => !find(run, epoch))
      segments.append(fresh.map(([run, epoch]) => openLine(run, epoch, 1, false)).join(''))
      for (const [run, epoch] of fresh) known.set(keyOf(run, epoch), newHeld(run, epoch))
    },
    append(run, epoch, entries) {
      const held = find(run, epoch)
      if (!held || held.isEnded) return undefined
      let isUrgent = false
      for (const entry of entries) {
        const text = JSON.stringify(entry)
        held.gathered.push(text)
        throttle.add(held, text.length)
        gatheredChars += text.length
        held.isEnded = entry[0] === 'end'
        isUrgent ||= entry[0] !== 'e'
        dirty.add(held)
        if (gatheredChars >= GATHER_CHARS && !throttle.isDiskRefusing()) flush()
      }
      flushSoon(isUrgent)
      return throttle.pauseFor(held)
    },
    ack(run, epoch, seq) {
      const held = find(run, epoch)
      if (!held) return
      const { chars, segments: freed } = takeAcked(held, seq)
      throttle.freed(chars)
      settle(freed)
      if (held.isEnded && held.gathered.length === 0 && held.acked >= held.written) forget(held)
    },
    forget(run, epoch) {
      const held = find(run, epoch)
      if (held) forget(held)
    },
    find,
    held: () => [...known.values()],
    holds: () => [...known.values()].map(placementOf),
    onWritten: (each) => (listener = each),
    read: (from) => segments.read(from),
    oldest: () => segments.oldest(),
    end: () => segments.end(),
    flush,
    close() {
      flush()
      clearTimeout(timer)
      segments.close()
    },
  }
}

function headOf(held: Held): string {
  const isEnded = held.isEnded && held.gathered.length === 0
  return openLine(held.run, held.epoch, held.written + 1, isEnded)
}

/** What is gathered for a placement, as a line of the spool and as the text for the wire. */
function gatheredOf(held: Held) {
  const first = held.written + 1
  const last = held.written + held.gathered.length
  const head = `{"run":"${held.run}","epoch":${held.epoch},"first":${first},"entries":[`
  const json = `${head}${held.gathered.join(',')}]}`
  const line = batchLine(held.run, held.epoch, { first, last, isEnded: held.isEnded }, json)
  const chars = held.gathered.reduce((sum, text) => sum + text.length, 0)
  return { held, first, last, json, line, chars }
}
