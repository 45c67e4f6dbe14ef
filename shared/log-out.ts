import { readlinkSync, writeSync } from 'node:fs'
import { Socket } from 'node:net'

/** Where the lines of a log go. Throws where a line cannot be written. */
export interface LogOut {
  write(line: string): unknown
  /** Calls `then` once, when it takes lines again after it refused one. */
  onRoom?(then: () => void): void
  /** Reads a priority at the start of a line, `<3>`, and takes it away. */
  isJournal?: boolean
}

/** Lines that could not be written. */
export interface Gap {
  lines: number
  /** When the first of them was to be written. */
  since: number
  reason: string
}

let dropped = 0

/** Lines that this process could not write when they came, of all its logs. */
export const droppedLines = (): number => dropped

/**
 * Writes lines and never throws: a full disk must not end whoever has something to say. What cannot be written is
 * dropped and counted, and `note` makes the line that says so before the next one that can. Where none comes before
 * there is room, the last of them is written after all: of a process that ends it is the one that says why.
 */
export function dropping(out: LogOut, note: (gap: Gap) => string): (line: string) => void {
  let gap: Gap | undefined
  let last = ''
  const rescue = () => {
    if (!gap) return
    try {
      if (gap.lines > 1) out.write(note({ ...gap, lines: gap.lines - 1 }))
      gap.lines = 1
      out.write(last)
      gap = undefined
    } catch {
      out.onRoom?.(rescue)
    }
  }
  return (line) => {
    try {
      if (gap) out.write(note(gap))
      gap = undefined
      out.write(line)
    } catch (error) {
      if (!gap) out.onRoom?.(rescue)
      const { lines, since } = gap ?? { lines: 0, since: Date.now() }
      gap = { lines: lines + 1, since, reason: (error as Error).message }
      last = line
      dropped++
    }
  }
}

/** Lines at the end of an open file. What a full disk has cut off is ended first when there is room again. */
export function endOf(file: () => number): { write(line: string): number } {
  let isCut = false
  return {
    write(line) {
      const bytes = Buffer.from(isCut ? `\n${line}` : line)
      for (let at = 0; at < bytes.length;) {
        at += writeSync(file(), bytes, at)
        isCut = at < bytes.length
      }
      return bytes.length
    },
  }
}

const standard = new Map<1 | 2, LogOut>()

/**
 * Our stdout (1) or stderr (2). A terminal and a pipe are sockets; of a file Node makes a stream that is of no use any
 * more, and ends the process, once a write has failed. Not asked by `fstat`: after that of a pipe Node 22.23 resolves
 * the next import without following links, and refuses the TypeScript of our packages.
 */
export function standardOut(fd: 1 | 2): LogOut {
  const known = standard.get(fd)
  if (known) return known
  const stream = fd === 1 ? process.stdout : process.stderr
  const made = stream instanceof Socket ? { ...outOfSocket(stream, fd), isJournal: isJournal(fd) } : endOf(() => fd)
  standard.set(fd, made)
  return made
}

/** systemd says by device and inode which socket is its journal's, also to processes that were given another one. */
function isJournal(fd: number): boolean {
  const inode = /:(\d+)$/.exec(process.env['JOURNAL_STREAM'] ?? '')?.[1]
  if (inode === undefined) return false
  try {
    return readlinkSync(`/proc/self/fd/${fd}`) === `socket:[${inode}]`
  } catch {
    return false
  }
}

/** What waits in memory for a reader who takes nothing, in bytes. */
const MOST_UNREAD = 4 * 1024 * 1024
/** What is written at a time of what waits. */
const PIECE_BYTES = 64 * 1024
/** `process.exit` waits at most this long for a reader. A process that ends by itself waits as with any stream. */
const EXIT_FLUSH_MS = 1_000
/** How soon a reader who takes nothing is tried again. */
const MOST_PAUSE_MS = 100

/**
 * Not by the stream: what waits there is lost when the process ends. Node has made its file non-blocking. What fails
 * here has lost its reader for good. One that stands still may go on.
 */
function outOfSocket(stream: NodeJS.WriteStream, fd: number): LogOut {
  let failure: Error | undefined
  let unread: Buffer = EMPTY
  let lines: Buffer[] = []
  let bytes = 0
  let waiting: (() => void)[] = []
  let isAwaited = false
  // Others in this process use the stream.
  stream.on('error', (error: Error) => (failure = error))

  /** Answers whether the reader took something. */
  const push = (): boolean => {
    if (bytes === 0) return false
    if (unread.length === 0) [unread, lines] = [Buffer.concat(lines), []]
    try {
      const written = writeSync(fd, unread, 0, Math.min(unread.length, PIECE_BYTES))
      unread = unread.subarray(written)
      bytes -= written
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'EAGAIN') return false
      failure = error as Error
      ;[unread, lines, bytes] = [EMPTY, [], 0]
    }
    const callbacks = waiting
    waiting = []
    for (const then of callbacks) then()
    return true
  }
  const pushAll = (): boolean => {
    while (push());
    return bytes === 0
  }
  const pushLater = (pauseMs: number) => {
    isAwaited = true
    setTimeout(() => {
      const isTaken = push()
      const isDone = pushAll()
      isAwaited = false
      if (!isDone) pushLater(isTaken ? 1 : Math.min(pauseMs * 2, MOST_PAUSE_MS))
    }, pauseMs)
  }
  process.on('exit', () => {
    const until = performance.now() + EXIT_FLUSH_MS
    while (!pushAll() && performance.now() < until) sleep(1)
  })
  return {
    write(line) {
      if (failure) throw failure
      if (bytes > MOST_UNREAD) throw new Error('nobody reads it')
      const added = Buffer.from(line)
      lines.push(added)
      bytes += added.length
      if (isAwaited || pushAll()) return
      // A line that follows a gap may have asked for it meanwhile.
      if (!isAwaited) pushLater(1)
    },
    onRoom: (then) => void waiting.push(then),
  }
}

const EMPTY = Buffer.alloc(0)

/** Without turns of the event loop, of which there are none at the end of a process. */
function sleep(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
}
