import { writeSync } from 'node:fs'
import { Socket } from 'node:net'

/** Where the lines of a log go. Throws where a line cannot be written. */
export interface LogOut {
  write(line: string): unknown
}

/** Lines that could not be written. */
export interface Gap {
  lines: number
  /** When the first of them was to be written. */
  since: number
  reason: string
}

let dropped = 0

/** Lines that this process could not write, of all its logs. */
export const droppedLines = (): number => dropped

/**
 * Writes lines and never throws: a full disk must not end whoever has something to say. What cannot be written is
 * dropped and counted, and `note` makes the line that says so before the next one that can.
 */
export function dropping(out: LogOut, note: (gap: Gap) => string): (line: string) => void {
  let gap: Gap | undefined
  return (line) => {
    try {
      if (gap) out.write(note(gap))
      gap = undefined
      out.write(line)
    } catch (error) {
      const { lines, since } = gap ?? { lines: 0, since: Date.now() }
      gap = { lines: lines + 1, since, reason: (error as Error).message }
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
  const made = stream instanceof Socket ? outOfStream(stream) : endOf(() => fd)
  standard.set(fd, made)
  return made
}

/** What waits in memory for a reader who takes nothing, in bytes. */
const MOST_UNREAD = 4 * 1024 * 1024

/** What fails here has lost its reader for good. One that stands still may go on. */
function outOfStream(stream: NodeJS.WriteStream): LogOut {
  let failure: Error | undefined
  stream.on('error', (error: Error) => (failure = error))
  return {
    write(line) {
      if (failure) throw failure
      if (stream.writableLength > MOST_UNREAD) throw new Error('nobody reads it')
      stream.write(line)
    },
  }
}
