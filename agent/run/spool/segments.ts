import { closeSync, ftruncateSync, mkdirSync, openSync, readdirSync, statSync, unlinkSync, writeSync } from 'node:fs'
import { open } from 'node:fs/promises'
import path from 'node:path'
import type { Log } from '@windlass/shared/log.ts'
import { parseLine } from './line.ts'
import type { SpoolLine } from './line.ts'
import type { Position } from './position.ts'
import { unreadableAtStart, type Unread } from './unread.ts'

export interface Chunk {
  lines: ReadLine[]
  next: Position
  /** Bytes that do not check, or that are not there though they were written. Lines behind them are read. */
  damagedBytes: number
  /** Nothing could be read here; `next` is where it would go on without the rest of that file. */
  unread?: Unread
}

/** A line, where it begins in its file, and its bytes with the line break. */
export type ReadLine = SpoolLine & { offset: number; length: number }

/** The files of the spool, in order. Written at the end, read from anywhere, removed from the front. */
export interface Segments {
  /** Writes whole lines and answers where they begin. Throws, with nothing written, when the disk refuses. */
  append(lines: string): Position
  /** What is written from now on does not stand in the same file as what is there. Answers the number of its file. */
  turnOver(): number
  end(): Position
  oldest(): Position
  /** Lines from a position on, some at a time. Does not reject. */
  read(from: Position): Promise<Chunk>
  /** In order, as a later file says what of an earlier one is over. What cannot be removed is tried again next time. */
  dropBefore(segment: number): void
  close(): void
}

export const SEGMENT_SIZES = { segmentBytes: 4 * 1024 * 1024, chunkBytes: 256 * 1024 }

/** `head` gives the lines that every new file begins with, so that the files before it can be removed. */
export function openSegments(
  folder: string,
  head: () => string,
  log: Log,
  { segmentBytes, chunkBytes } = SEGMENT_SIZES,
): Segments {
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const sizes = new Map(existing(folder).map((segment) => [segment, sizeOf(fileOf(folder, segment))]))
  let current = Math.max(0, ...sizes.keys())
  let least = 0
  /** Could not be removed, which is said once. */
  let staying: number | undefined
  let fd: number | undefined

  const begin = () => {
    const file = openSync(fileOf(folder, current + 1), 'w', 0o600)
    try {
      sizes.set(current + 1, writeAll(file, head(), 0))
    } catch (error) {
      closeSync(file)
      unlinkSync(fileOf(folder, current + 1))
      throw error
    }
    if (fd !== undefined) closeSync(fd)
    current += 1
    fd = file
    return file
  }
  const sizeNow = () => sizes.get(current) ?? 0

  return {
    append(lines) {
      // What is there after a restart may end in a torn line: a new life begins with a new file.
      const file = fd === undefined || sizeNow() >= segmentBytes || current < least ? begin() : fd
      const position = { segment: current, offset: sizeNow() }
      sizes.set(current, writeAll(file, lines, position.offset))
      return position
    },
    turnOver() {
      least = current + 1
      return least
    },
    end: () => ({ segment: current, offset: sizeNow() }),
    oldest: () => ({ segment: Math.min(current, ...sizes.keys()), offset: 0 }),
    async read(from) {
      const total = sizes.get(from.segment)
      const isOver = total === undefined || from.offset >= total
      if (isOver) return { lines: [], next: following(from, sizes, current), damagedBytes: 0 }
      const file = fileOf(folder, from.segment)
      const chunk = await readChunk(file, from.offset, { total, chunkBytes }).catch((error: Error) => error)
      if (!(chunk instanceof Error)) {
        const { lines, offset, damagedBytes } = chunk
        return { lines, next: { segment: from.segment, offset }, damagedBytes }
      }
      // Dropped meanwhile: nobody needs what was in it.
      if (!sizes.has(from.segment)) return { lines: [], next: following(from, sizes, current), damagedBytes: 0 }
      // More may be written into that file meanwhile.
      const next = { segment: from.segment, offset: total }
      return { lines: [], next, damagedBytes: 0, unread: { file, error: chunk } }
    },
    dropBefore(segment) {
      for (const each of [...sizes.keys()].filter((number) => number < segment)) {
        const error = unlinkError(fileOf(folder, each))
        if (error) {
          if (each !== staying) log.error('spool.file-stays', { file: fileOf(folder, each), error })
          staying = each
          return
        }
        sizes.delete(each)
      }
    },
    close() {
      if (fd !== undefined) closeSync(fd)
      fd = undefined
    },
  }
}

function fileOf(folder: string, segment: number): string {
  return path.join(folder, `${String(segment).padStart(10, '0')}.spool`)
}

function existing(folder: string): number[] {
  const names = readdirSync(folder).filter((name) => /^\d{10}\.spool$/.test(name))
  return names.map((name) => Number.parseInt(name, 10)).sort((a, b) => a - b)
}

function unlinkError(file: string): Error | undefined {
  try {
    unlinkSync(file)
    return undefined
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ENOENT' ? undefined : (error as Error)
  }
}

function sizeOf(file: string): number {
  try {
    return statSync(file).size
  } catch (error) {
    throw unreadableAtStart({ file, error: error as Error })
  }
}

function following(from: Position, sizes: Map<number, number>, current: number): Position {
  const later = [...sizes.keys()].filter((segment) => segment > from.segment)
  return later.length > 0
    ? { segment: Math.min(...later), offset: 0 }
    : { segment: current, offset: sizes.get(current) ?? 0 }
}

/**
 * Not asynchronous: entries must be in the file before they are sent, and a write into the page cache takes less than
 * the way to a thread and back. Not synced either: what the page cache holds outlives this process, and when the machine
 * itself goes down its programs go with it, so that their runs begin anew whatever their last entries were.
 */
function writeAll(fd: number, text: string, at: number): number {
  const bytes = Buffer.from(text)
  let done = 0
  try {
    while (done < bytes.length) done += writeSync(fd, bytes, done, bytes.length - done, at + done)
  } catch (error) {
    // A line cut short in the middle of a file would hide all that follow.
    ftruncateSync(fd, at)
    throw error
  }
  return at + bytes.length
}

async function readChunk(file: string, offset: number, { total, chunkBytes }: { total: number; chunkBytes: number }) {
  const handle = await open(file, 'r')
  try {
    // Nearly always one turn; a line with a large output takes more.
    for (let bytes = chunkBytes; ; bytes *= 4) {
      const buffer = Buffer.allocUnsafe(Math.min(bytes, total - offset))
      const { bytesRead } = await handle.read(buffer, 0, buffer.length, offset)
      const chunk = split(buffer.subarray(0, bytesRead), offset)
      // One that ends before what was written into it was cut short.
      const isWhole = offset + bytesRead >= total || bytesRead < buffer.length
      if (isWhole) return { ...chunk, offset: total, damagedBytes: chunk.damagedBytes + total - offset - chunk.used }
      if (chunk.used > 0) return { ...chunk, offset: offset + chunk.used }
    }
  } finally {
    await handle.close()
  }
}

/** The whole lines in it that check. None holds a line break, so that the next one begins behind it for certain. */
function split(buffer: Buffer, offset: number): { lines: ReadLine[]; used: number; damagedBytes: number } {
  const lines: ReadLine[] = []
  let used = 0
  let damagedBytes = 0
  for (let end = buffer.indexOf(10); end >= 0; end = buffer.indexOf(10, used)) {
    const line = parseLine(buffer.subarray(used, end))
    const length = end + 1 - used
    if (line) lines.push(Object.assign(line, { offset: offset + used, length }))
    else damagedBytes += length
    used = end + 1
  }
  return { lines, used, damagedBytes }
}
