import type { Log } from '@windlass/shared/log.ts'
import { probe } from '@windlass/shared/probe.ts'
import type { Entry, Placement } from '@windlass/shared/wire/agent.ts'
import { gapEntry, isLog, widened } from './gap.ts'
import { addWritten, keyOf, newHeld, placementOf, takeAcked } from './held.ts'
import type { FrameMark, Held } from './held.ts'
import { batchLine, forgetLine, gapLine, markLine, openLine } from './line.ts'
import { recoverSpool } from './recover.ts'
import { openSegments } from './segments.ts'
import type { Chunk, Position } from './segments.ts'
import { createThrottle } from './throttle.ts'

export interface SpoolOptions {
  folder: string
  /** A run with so many unacknowledged characters is paused; `totalBytes` is the same for all runs together. */
  runBytes: number
  totalBytes: number
  /** How long a run is paused because the disk is full, or because of `totalBytes`, before its log is no longer kept; 30 s by default. */
  cutAfterMs?: number
  /** How far this machine's clock is behind the coordinator's, by which the log of a run is told. */
  offsetMs?: () => number
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
  /**
   * Where the program stands after what was appended last. Written with the next entries; whoever takes the program back after a kill
   * of this agent hears it from there.
   */
  mark(run: string, epoch: number, mark: Omit<FrameMark, 'seq'>): void
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
  stats(): { placements: number; unacknowledged: number }
  /** Why it cannot be written at present. */
  trouble(): string | undefined
  /** Writes what is gathered now. */
  flush(): void
  close(): void
}

/** How long entries gather at most while others were written just before. */
const GATHER_MS = 2
const GATHER_CHARS = 256 * 1024
const RETRY_MS = 500
const CUT_AFTER_MS = 30_000
/** How much of what is left out may be unknown after kill -9. */
const GAP_NOTE_MS = 1_000

export async function openSpool(options: SpoolOptions): Promise<Spool> {
  const { log } = options
  const known = new Map<string, Held>()
  /** How many placements still need each file. */
  const needs = new Map<number, number>()
  const segments = openSegments(options.folder, () => [...known.values()].map(headOf).join(''))
  await recoverSpool(segments, known, needs, log)

  const total = [...known.values()].reduce((sum, { backlog }) => sum + backlog, 0)
  const throttle = createThrottle({ cutAfterMs: CUT_AFTER_MS, ...options, total })
  const dirty = new Set<Held>()
  /** More was left out of them than the files say. */
  const widening = new Set<Held>()
  /** Their programs say nothing at present, and how far these were heard is not in the files. */
  const unmarked = new Set<Held>()
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
    if (dirty.size === 0 && widening.size === 0 && unmarked.size === 0 && forgotten === '') return
    const gaps = [...widening].map(gapOf)
    const quiet = [...unmarked].filter((held) => !dirty.has(held))
    const written = [...dirty].map(gatheredOf)
    let at: Position
    try {
      at = segments.append([forgotten, ...written.map((each) => each.line), ...quiet.map(nextMarkOf), ...gaps].join(''))
    } catch (error) {
      return waitForDisk(error)
    }
    flushedAt = performance.now()
    forgotten = ''
    gatheredChars = 0
    dirty.clear()
    widening.clear()
    unmarked.clear()
    for (const held of quiet) marked(held)
    for (const { held, last, chars } of written) {
      held.gathered = []
      marked(held)
      if (held.parts.at(-1)?.segment !== at.segment) needs.set(at.segment, (needs.get(at.segment) ?? 0) + 1)
      addWritten(held, last, chars, at.segment)
    }
    listener(written.map((each) => ({ ...each, at })))
    // Last, for those who go on now have something to say.
    if (throttle.diskWorks()) log('spool.disk.works')
    probe('spool.written', { placements: written.length })
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

  const gather = (held: Held, entry: Entry) => {
    const text = JSON.stringify(byClockOf(options.offsetMs?.() ?? 0, entry))
    held.gathered.push(text)
    throttle.add(held, text.length)
    gatheredChars += text.length
    dirty.add(held)
  }

  /** What was left out stands in front of what follows it. */
  const closeGap = (held: Held) => {
    const { gap } = held
    if (!gap) return
    held.gap = undefined
    widening.delete(held)
    log.warn('run.log.gap', { run: held.run, epoch: held.epoch, ...gap })
    gather(held, gapEntry(gap))
  }

  const leaveOut = (held: Held, entry: Entry) => {
    held.gap = widened(held.gap, entry)
    if (held.mark) held.nextMark = { ...held.mark, frames: null }
    widening.add(held)
    if (!throttle.isDiskRefusing()) timer ??= setTimeout(flush, held.gap.events === 1 ? 0 : GAP_NOTE_MS)
  }

  throttle.onRelief((held) => {
    closeGap(held)
    flushSoon(false)
  })

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
    widening.delete(held)
    unmarked.delete(held)
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
        if (throttle.isCut(held) && isLog(entry)) {
          leaveOut(held, entry)
          continue
        }
        closeGap(held)
        gather(held, entry)
        held.isEnded = entry[0] === 'end'
        isUrgent ||= entry[0] !== 'e'
        if (gatheredChars >= GATHER_CHARS && !throttle.isDiskRefusing()) flush()
      }
      if (dirty.has(held)) flushSoon(isUrgent)
      return throttle.pauseFor(held)
    },
    mark(run, epoch, mark) {
      const held = find(run, epoch)
      // What was left out would be told again, and then be there twice: once as itself, once as a gap.
      const frames = held?.gap ? null : mark.frames
      if (!held) return
      held.nextMark = { ...mark, frames, seq: held.written + held.gathered.length }
      // Otherwise it goes along with what is gathered. A program may be silent for hours, and its agent be killed then.
      if (frames === null || held.gathered.length > 0) return
      unmarked.add(held)
      flushSoon(false)
    },
    ack(run, epoch, seq) {
      const held = find(run, epoch)
      if (!held) return
      const { chars, segments: freed } = takeAcked(held, seq)
      throttle.freed(chars)
      settle(freed)
      if (held.isEnded && held.gathered.length === 0 && held.acked >= held.written) forget(held)
      probe('spool.acked', { run, epoch, seq })
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
    stats: () => ({ placements: known.size, unacknowledged: throttle.total() }),
    trouble: () =>
      throttle.isDiskRefusing() ? `the disk of ${options.folder} takes no more: make room on it.` : undefined,
    flush,
    close() {
      flush()
      clearTimeout(timer)
      throttle.close()
      segments.close()
    },
  }
}

function headOf(held: Held): string {
  const isEnded = held.isEnded && held.gathered.length === 0
  const mark = held.mark ? markLine(held.run, held.epoch, held.mark) : ''
  return openLine(held.run, held.epoch, held.written + 1, isEnded) + mark + gapOf(held)
}

function nextMarkOf({ run, epoch, nextMark }: Held): string {
  return nextMark ? markLine(run, epoch, nextMark) : ''
}

/** The next mark stands in the files. */
function marked(held: Held): void {
  held.mark = held.nextMark ?? held.mark
  held.nextMark = undefined
}

function gapOf({ run, epoch, gap }: Held): string {
  return gap ? gapLine(run, epoch, gap) : ''
}

/** What is gathered for a placement, as a line of the spool and as the text for the wire. */
function gatheredOf(held: Held) {
  const first = held.written + 1
  const last = held.written + held.gathered.length
  const head = `{"run":"${held.run}","epoch":${held.epoch},"first":${first},"entries":[`
  const json = `${head}${held.gathered.join(',')}]}`
  const line = batchLine(held.run, held.epoch, { first, last, isEnded: held.isEnded }, json) + nextMarkOf(held)
  const chars = held.gathered.reduce((sum, text) => sum + text.length, 0)
  return { held, first, last, json, line, chars }
}

function byClockOf(offsetMs: number, entry: Entry): Entry {
  return offsetMs === 0 ? entry : (entry.with(1, Math.max(0, entry[1] + offsetMs)) as unknown as Entry)
}
