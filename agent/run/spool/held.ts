import type { Placement } from '@windlass/shared/wire/agent.ts'
import type { Gap } from './gap.ts'
import type { Position } from './position.ts'

/** A placement whose entries are not all acknowledged yet. Entries are numbered from 1. */
export interface Held {
  readonly run: string
  readonly epoch: number
  /** Its entries stand from here on: those before it are of a former placement under the same numbers. */
  readonly from: Position
  /** Entries as JSON texts that wait for the next write. */
  gathered: string[]
  /** The last entry that stands in the files. */
  written: number
  /** The last entry handed to the connection of the moment. */
  sent: number
  /** The last entry that any connection was handed, or that was there at the start. */
  everSent: number
  acked: number
  isEnded: boolean
  /** Nothing of its program has begun, for certain; see `Spool.begin`. */
  isUnbegun: boolean
  /** What was written here and what the coordinator has do not fit together; nothing but the end follows these. */
  isSetBack: boolean
  /** What was left out since the last entry. */
  gap: Gap | undefined
  /** Bytes in the files that are not acknowledged, with the characters of what is gathered. */
  backlog: number
  /** How much of the backlog falls away with which entry, in steps of some size: one per entry would be too many. */
  marks: { last: number; bytes: number }[]
  /** Where its program stood at some entry; see `Spool.mark`. The next one is not in the files yet. */
  mark: FrameMark | undefined
  nextMark: FrameMark | undefined
  /** The files that hold entries of this placement which are not acknowledged yet, with the last one in each. */
  parts: { segment: number; last: number }[]
}

/** Entries that have just been written, with the text that goes over the wire. */
export interface Written {
  held: Held
  first: number
  last: number
  json: string
  at: Position
}

/** Where a program stood when the entry `seq` was written. */
export interface FrameMark {
  seq: number
  /** So many of its frames had brought all that they bring; null: that cannot be said. */
  frames: number | null
  /** So many of them were about its journal. */
  journal: number
  isParked: boolean
}

export function newHeld(run: string, epoch: number, from: Position): Held {
  const counts = { written: 0, sent: 0, everSent: 0, acked: 0, backlog: 0 }
  return {
    run,
    epoch,
    from,
    ...counts,
    gathered: [],
    isEnded: false,
    isUnbegun: false,
    isSetBack: false,
    gap: undefined,
    mark: undefined,
    nextMark: undefined,
    marks: [],
    parts: [],
  }
}

/** Set back to `seq` entries; its end will stand in that file of the spool or in a later one. */
export function heldFrom(run: string, epoch: number, { seq, segment }: { seq: number; segment: number }): Held {
  const counts = { written: seq, sent: seq, everSent: seq, acked: seq }
  return { ...newHeld(run, epoch, { segment, offset: 0 }), ...counts, isSetBack: true }
}

export function keyOf(run: string, epoch: number): string {
  return `${run}/${epoch}`
}

export function placementOf(held: Held): Placement {
  return [held.run, held.epoch]
}

const MARK_BYTES = 64 * 1024

/** `bytes`: of its lines, whatever they hold besides the entries. */
export function addWritten(held: Held, last: number, bytes: number, segment: number): void {
  held.written = last
  const mark = held.marks.at(-1)
  if (mark && mark.bytes < MARK_BYTES) Object.assign(mark, { last, bytes: mark.bytes + bytes })
  else held.marks.push({ last, bytes })
  const part = held.parts.at(-1)
  if (part?.segment === segment) part.last = last
  else held.parts.push({ segment, last })
}

/** So much more in the files falls away with the last entry. Answers how much: nothing where all is acknowledged. */
export function addBehind({ marks }: Held, bytes: number): number {
  const mark = marks.at(-1)
  if (mark) mark.bytes += bytes
  return mark ? bytes : 0
}

/** What stands in the files and is not sent, in steps of `MARK_BYTES`. */
export function unsentBytes({ marks, sent }: Held): number {
  return marks.reduce((sum, { last, bytes }) => (last > sent ? sum + bytes : sum), 0)
}

export function isSent({ sent, written }: Held): boolean {
  return sent >= written
}

/**
 * In which the first entry stands that is not sent. Undefined where nothing says so: what was acknowledged, and is
 * asked for again, is in one of the files or in none.
 */
export function nextFile({ sent, acked, parts }: Held): number | undefined {
  return sent >= acked ? parts.find(({ last }) => last > sent)?.segment : undefined
}

/** Answers the bytes that fell away and the files that hold nothing of it any more. */
export function takeAcked(held: Held, seq: number): { bytes: number; segments: number[] } {
  held.acked = Math.max(held.acked, Math.min(seq, held.written))
  // A connection before this one may have brought more than was said of it at the start of this one.
  held.sent = Math.max(held.sent, Math.min(seq, held.written))
  const marks = take(held.marks, (mark) => mark.last <= held.acked)
  const parts = take(held.parts, (part) => part.last <= held.acked)
  const bytes = marks.reduce((sum, mark) => sum + mark.bytes, 0)
  held.backlog -= bytes
  return { bytes, segments: parts.map((part) => part.segment) }
}

/** Removes the leading items that fit. */
function take<T>(items: T[], fits: (item: T) => boolean): T[] {
  const end = items.findIndex((item) => !fits(item))
  return items.splice(0, end < 0 ? items.length : end)
}
